"""Relations that hold between the optimal values of related `draft-stopping` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from random import Random

from specopt.kinds.relation import (
    RELAXED,
    UNITS,
    Data,
    one_more,
    relations_of,
    scaled,
    shuffled,
    times,
)
from specopt.models.draft_stopping.problem import DraftStoppingProblem


def _longer(data: Data, random: Random) -> Data | None:
    lists = [data["round_seconds"], *(one["acceptance_rate"] for one in data["rounds"])]
    if any(isinstance(value, list) for value in lists):
        return None
    return one_more("max_draft_tokens")(data, random)


def _renamed(data: Data, random: Random) -> Data:
    order = shuffled(data["scores"]["after"], random)
    return data | {
        "scores": {name: [shares[i] for i in order] for name, shares in data["scores"].items()}
    }


def _split(data: Data, random: Random) -> Data:
    halves = [
        one | {"probability": one["probability"] / 2} for one in data["rounds"] for _ in range(2)
    ]
    return data | {"rounds": halves}


_keeps = relations_of(DraftStoppingProblem)

RELATIONS = (
    _keeps(
        "scores renamed",
        "policies depend on the distributions of scores, not on their names",
        _renamed,
        equal=True,
    ),
    _keeps(
        "classes split",
        "two classes with equal distributions are one class",
        _split,
        equal=True,
    ),
    _keeps(
        "time scaled",
        UNITS,
        scaled({"round_seconds": 2.0, "draft_seconds_per_token": 2.0}),
        implied=times(0.5),
        equal=True,
    ),
    _keeps("faster drafts", "no round becomes longer", scaled({"draft_seconds_per_token": 0.5})),
    _keeps("longer drafts allowed", RELAXED, _longer, when="no list by position"),
)
