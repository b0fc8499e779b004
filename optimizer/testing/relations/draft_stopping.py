"""What optima of `draft-stopping` keep."""

from __future__ import annotations

from random import Random

from specopt.models.draft_stopping import DraftStoppingProblem
from specopt.testing.relations.base import (
    RELAXED,
    UNITS,
    Data,
    Relation,
    raised,
    scaled,
)


def _relations() -> list[Relation]:
    kind = DraftStoppingProblem.kind

    def longer(data: Data, random: Random) -> Data | None:
        lists = [data["round_seconds"], *(one["acceptance_rate"] for one in data["rounds"])]
        if any(isinstance(value, list) for value in lists):
            return None
        return data | {"max_draft_tokens": data["max_draft_tokens"] + 1}

    def bins(data: Data, random: Random) -> Data:
        order = random.sample(range(len(data["scores"]["after"])), len(data["scores"]["after"]))
        return data | {"scores": {name: [law[i] for i in order] for name, law in data["scores"].items()}}

    def split(data: Data, random: Random) -> Data:
        halves = [one | {"probability": one["probability"] / 2} for one in data["rounds"] for _ in range(2)]
        return data | {"rounds": halves}

    scale = {"round_seconds": 2.0, "draft_seconds_per_token": 2.0}
    return [
        Relation(kind=kind, name="scores renamed", reason="a policy knows scores by their laws alone", change=bins,
                 equal=True),
        Relation(kind=kind, name="classes split", reason="two classes of one law are one", change=split, equal=True),
        Relation(kind=kind, name="time scaled", reason=UNITS, change=scaled(scale), equal=True,
                 implied=lambda problem, objective: 0.5 * objective),
        Relation(kind=kind, name="faster drafts", reason="every round is as short or shorter",
                 change=raised("draft_seconds_per_token", lambda seconds: 0.5 * seconds)),
        Relation(kind=kind, name="longer drafts allowed", when="no list by position", reason=RELAXED, change=longer),
    ]  # fmt: skip


RELATIONS = tuple(_relations())
