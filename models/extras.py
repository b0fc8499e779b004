"""Helpers that import optional libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from specopt.models.errors import MissingDependency


def library(name: str, missing: str) -> Any:
    """Import an optional library and return its module.

    Raises
    ------
    MissingDependency
        If the library is not installed. The parameter `missing` is the error message.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingDependency(missing) from None


def pyarrow() -> Any:
    """Import the optional library `pyarrow` and return its module.

    Raises
    ------
    MissingDependency
        If `pyarrow` is not installed.
    """
    return library("pyarrow", "tables need pyarrow: pip install 'specopt[tables]'")
