"""Late imports of functions that models call but that belong to higher layers.

The package's top level registers the names of these functions. Each function is imported when it is
first called, because models must not import from higher layers.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from specopt.models.reading import StrPath

LATE: dict[str, str] = {}
"""Module from which each function is imported, by the name of the function."""


def late(name: str) -> Callable[..., Any]:
    """Import and return the registered function with a given name."""
    found: Callable[..., Any] = getattr(import_module(LATE[name]), name)
    return found


class Picture(Protocol):
    """A picture, which notebooks display and the `save` method writes to a file."""

    def save(self, path: StrPath, *, dark: bool = False) -> None:
        """Write a PNG, PDF or SVG file, depending on the extension of the path."""

    def to_dict(self) -> dict[str, Any]:
        """Return the picture's Vega-Lite specification."""


class Shown:
    """Base class of values that are printed as tables and displayed as HTML in notebooks."""

    def __str__(self) -> str:
        return str(late("in_text")(self))

    def _repr_html_(self) -> str:
        return str(late("in_notebook")(self))
