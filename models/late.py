"""What models need of upper layers: the front door names these functions, and they are loaded when
they are first called, because models import nothing above them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from specopt.models.reading import StrPath

LATE: dict[str, str] = {}
"""The module of each of these functions."""


def late(name: str) -> Callable[..., Any]:
    """Return the function of that name."""
    found: Callable[..., Any] = getattr(import_module(LATE[name]), name)
    return found


class Picture(Protocol):
    """A picture: a notebook shows it, and `save` writes it to a file."""

    def save(self, path: StrPath, *, dark: bool = False) -> None:
        """Write a PNG, PDF or SVG, as the file's name ends."""

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as Vega-Lite."""


class Shown:
    """Base of values that print as a table and that a notebook shows as HTML."""

    def __str__(self) -> str:
        return str(late("in_text")(self))

    def _repr_html_(self) -> str:
        return str(late("in_notebook")(self))
