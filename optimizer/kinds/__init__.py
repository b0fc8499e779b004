"""The kinds of optimisation problems.

Each built-in kind is declared in a folder of this package. `NAMES` lists these folders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

from specopt.kinds.kind import Kind
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.late import late
from specopt.models.problem import Problem

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
"""Folders of the built-in kinds, in the order in which kinds are listed for users.

Each folder contains the modules `view`, `strategies` and `relations` of its kind.
"""

KINDS: tuple[Kind, ...] = tuple(
    replace(
        import_module(package).KIND,
        view=f"{package}.view",
        strategies=f"{package}.strategies",
        relations=f"{package}.relations",
    )
    for package in (f"specopt.kinds.{name}" for name in NAMES)
)


def kinds(name: str | None = None) -> Iterator[Kind]:
    """Yield all kinds of problems. Kinds from plug-ins come last and are loaded on demand.

    If `name` is specified, only the plug-in with this name is loaded.
    """
    yield from KINDS
    yield from late("plugged_kinds")(name)


def names_with(part: str) -> str:
    """Return the names of the kinds that declare an optional part, separated by commas.

    `part` is the name of a field of `Kind` that may be None.
    """
    return ", ".join(kind.name for kind in kinds() if getattr(kind, part) is not None)


def kind_of(problem: Problem | type[Problem] | str) -> Kind:
    """Return the kind of a problem or of a problem class, or the kind with a given name.

    Raises
    ------
    InvalidInput
        If the kind does not exist.
    BrokenPlugin
        If the kind is a plug-in that cannot be used.
    """
    name: Any = getattr(problem, "kind", problem)
    for kind in kinds(name):
        if kind.name == name:
            return kind
    raise InvalidInput(
        f"kind: expected one of {', '.join(kind.name for kind in kinds())}, got {describe(name)}"
    )
