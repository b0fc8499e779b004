"""Libraries that are not always installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from specopt.models.errors import MissingDependency


def library(name: str, missing: str) -> Any:
    """Return the module of an optional library.

    Raises
    ------
    MissingDependency
        If it is not installed, with the message `missing`.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingDependency(missing) from None


def pyarrow() -> Any:
    """Return the module `pyarrow`.

    Raises
    ------
    MissingDependency
        If it is not installed.
    """
    return library("pyarrow", "tables need pyarrow: pip install 'specopt[tables]'")
