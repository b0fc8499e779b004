"""The kinds of problems: what belongs to one is declared in its folder, and `NAMES` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from specopt.kinds.kind import Kind
from specopt.models.errors import InvalidInput
from specopt.models.problem import FINDERS, Problem

NAMES = (
    "serving_latency",
    "continuous_serving",
    "prompt_chunking",
    "draft_allocation",
    "fair_goodput",
    "verification_batch",
    "draft_control",
    "draft_stopping",
    "placement",
)
"""Folders of kinds, in the order in which the kinds are listed."""

KINDS: tuple[Kind, ...] = tuple(import_module(f"specopt.kinds.{name}").KIND for name in NAMES)


def kinds() -> Iterator[Kind]:
    """Yield all kinds; those of plug-ins come last, and are loaded when they are asked for."""
    yield from KINDS
    for find in FINDERS:
        yield from find(None)


def kind_of(what: Problem | type[Problem] | str) -> Kind:
    """Return the kind of a problem, of a class of problems, or of a name.

    Raises
    ------
    InvalidInput
        If there is no such kind.
    BrokenPlugin
        If it is that of a plug-in that cannot be used.
    """
    name = what if isinstance(what, str) else what.kind
    kind: Kind
    for find in (lambda _: KINDS, *FINDERS):
        for kind in find(name):
            if kind.name == name:
                return kind
    raise InvalidInput(
        f"kind: expected one of {', '.join(kind.name for kind in kinds())}, got {name!r}"
    )
