"""Deferred imports of functions that are called by models but defined in higher layers.

The package's top-level module registers these functions by name. Each function is imported when it
is first called, because models must not import from higher layers when they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from specopt.models.reading import StrPath

LATE: dict[str, str] = {}
"""Mapping from the name of each registered function to the module that defines the function."""


def late(name: str) -> Callable[..., Any]:
    """Import the function that is registered under `name`, and return it."""
    found: Callable[..., Any] = getattr(import_module(LATE[name]), name)
    return found


class Picture(Protocol):
    """A chart that notebooks display and that can be saved to a file."""

    def save(self, path: StrPath, *, dark: bool = False) -> None:
        """Write the chart to a PNG, PDF or SVG file. The path's extension determines the format."""

    def to_dict(self) -> dict[str, Any]:
        """Return the Vega-Lite specification of the chart."""


class Shown:
    """Base class for objects that are printed as tables and displayed as HTML in notebooks."""

    def __str__(self) -> str:
        return str(late("in_text")(self))

    def _repr_html_(self) -> str:
        return str(late("in_notebook")(self))
