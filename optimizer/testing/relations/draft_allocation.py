"""What optima of `draft-allocation` keep."""

from __future__ import annotations

from random import Random

from specopt.models.draft_allocation import DraftAllocationProblem
from specopt.testing.relations.base import (
    NAMES,
    RELAXED,
    Data,
    Relation,
    likelier,
    permuted,
    raised,
    scaled,
)


def _relations() -> list[Relation]:
    kind = DraftAllocationProblem.kind

    def joined(data: Data, random: Random) -> Data:
        caps = {"max_draft_tokens": [*data["max_draft_tokens"], 3]} if "max_draft_tokens" in data else {}
        return data | caps | {name: [*data[name], 0.0] for name in ("acceptance_rates", "weights")}

    columns = ("acceptance_rates", "weights", "max_draft_tokens")
    return [
        Relation(kind=kind, name="clients permuted", reason=NAMES, equal=True,
                 change=permuted(*columns, of="acceptance_rates")),
        Relation(kind=kind, name="weights scaled", reason="the objective is linear in them", equal=True,
                 change=scaled({"weights": 2.0}), implied=lambda problem, objective: 2.0 * objective),
        Relation(kind=kind, name="one more token", reason=RELAXED, change=raised("budget_tokens", lambda n: n + 1)),
        Relation(kind=kind, name="caps raised", when="caps are given", reason=RELAXED,
                 change=raised("max_draft_tokens", lambda cap: cap + 1)),
        Relation(kind=kind, name="drafts likelier", reason="every plan gains from acceptance",
                 change=raised("acceptance_rates", likelier)),
        Relation(kind=kind, name="a client without weight", reason="it counts for nothing", change=joined, equal=True),
    ]  # fmt: skip


RELATIONS = tuple(_relations())
