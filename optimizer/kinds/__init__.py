"""The kinds of problems: what belongs to one is declared in one file, and this tuple lists them."""

from __future__ import annotations

from collections.abc import Iterator

from specopt.kinds import (
    continuous_serving,
    draft_allocation,
    draft_control,
    draft_stopping,
    fair_goodput,
    placement,
    prompt_chunking,
    serving_latency,
    verification_batch,
)
from specopt.kinds.kind import Kind
from specopt.models.errors import InvalidInput
from specopt.models.problem import FINDERS, Problem

KINDS = (
    serving_latency.KIND,
    continuous_serving.KIND,
    prompt_chunking.KIND,
    draft_allocation.KIND,
    fair_goodput.KIND,
    verification_batch.KIND,
    draft_control.KIND,
    draft_stopping.KIND,
    placement.KIND,
)


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
    raise InvalidInput(f"kind: expected one of {', '.join(kind.name for kind in kinds())}, got {name!r}")
