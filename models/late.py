"""Functions of upper layers that models call. The front door registers their names, and they are
loaded at their first call, because models import nothing above them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from specopt.models.reading import StrPath

LATE: dict[str, str] = {}
"""Each function is imported from this module."""


def late(name: str) -> Callable[..., Any]:
    """Return the function with a given name."""
    found: Callable[..., Any] = getattr(import_module(LATE[name]), name)
    return found


class Picture(Protocol):
    """A picture that a notebook shows and `save` writes to a file."""

    def save(self, path: StrPath, *, dark: bool = False) -> None:
        """Write a PNG, PDF or SVG, depending on the file's extension."""

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as Vega-Lite."""


class Shown:
    """Base of values that print as a table and that a notebook shows as HTML."""

    def __str__(self) -> str:
        return str(late("in_text")(self))

    def _repr_html_(self) -> str:
        return str(late("in_notebook")(self))
