"""Relations that hold between the optimal values of related `draft-allocation` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from random import Random

from specopt.kinds.relation import (
    NAMES,
    RELAXED,
    Data,
    likelier,
    one_more,
    permuted,
    raised,
    relations_of,
    scaled,
    times,
)
from specopt.models.draft_allocation.problem import DraftAllocationProblem


def _joined(data: Data, random: Random) -> Data:
    entries = {"acceptance_rates": 0.0, "weights": 0.0, "max_draft_tokens": 3}
    return data | {name: [*data[name], entry] for name, entry in entries.items() if name in data}


_keeps = relations_of(DraftAllocationProblem)

RELATIONS = (
    _keeps(
        "clients permuted",
        NAMES,
        permuted("acceptance_rates", "weights", "max_draft_tokens"),
        equal=True,
    ),
    _keeps(
        "weights scaled",
        "the objective is linear in the weights",
        scaled({"weights": 2.0}),
        implied=times(2.0),
        equal=True,
    ),
    _keeps("one more token", RELAXED, one_more("budget_tokens")),
    _keeps("caps raised", RELAXED, one_more("max_draft_tokens"), when="caps are given"),
    _keeps(
        "acceptance raised",
        "every plan gains from acceptance",
        raised("acceptance_rates", likelier),
    ),
    _keeps("a client without weight", "it does not change the objective", _joined, equal=True),
)
