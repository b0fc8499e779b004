"""Arrow tables, which need an optional library."""

from __future__ import annotations

from typing import Any

from specopt.models.errors import MissingDependency


def pyarrow() -> Any:
    """Return the module `pyarrow`.

    Raises
    ------
    MissingDependency
        If it is not installed.
    """
    try:
        import pyarrow
    except ImportError:
        raise MissingDependency("tables need pyarrow: pip install 'specopt[tables]'") from None
    return pyarrow
