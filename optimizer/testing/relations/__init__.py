"""Relations that optima keep: how the optimum changes when a problem does, as data that can be run one by one.

>>> from specopt import generate, solve
>>> from specopt.testing import relation
>>> one = relation("draft-allocation", "one more token")
>>> one.reason
'every plan stays feasible'
>>> one.check(solve, generate("draft-allocation/uniform", clients=3, budget=5))
True
"""

from __future__ import annotations

from specopt.kinds.continuous_serving import relations as continuous_serving
from specopt.kinds.draft_allocation import relations as draft_allocation
from specopt.kinds.draft_control import relations as draft_control
from specopt.kinds.draft_stopping import relations as draft_stopping
from specopt.kinds.fair_goodput import relations as fair_goodput
from specopt.kinds.placement import relations as placement
from specopt.kinds.prompt_chunking import relations as prompt_chunking
from specopt.kinds.relation import Relation
from specopt.kinds.serving_latency import relations as serving_latency
from specopt.kinds.verification_batch import relations as verification_batch
from specopt.models.errors import InvalidInput

RELATIONS: tuple[Relation, ...] = tuple(
    one
    for kind in (
        serving_latency, continuous_serving, prompt_chunking, draft_allocation, fair_goodput, verification_batch,
        draft_control, draft_stopping, placement,
    )
    for one in kind.RELATIONS
)  # fmt: skip


def relations(kind: str | None = None) -> tuple[Relation, ...]:
    """Return the relations of a kind of problem, or all."""
    return tuple(one for one in RELATIONS if kind in (None, one.kind))


def relation(kind: str, name: str) -> Relation:
    """Return a relation by its kind and name.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    for one in relations(kind):
        if one.name == name:
            return one
    raise InvalidInput(f"name: expected one of {', '.join(one.name for one in relations(kind))}, got {name!r}")
