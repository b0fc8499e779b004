"""What optima of `fair-goodput` keep."""

from __future__ import annotations

from random import Random

from specopt.models.fair_goodput import FairGoodputProblem
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
    kind = FairGoodputProblem.kind
    seconds = ("draft_seconds_per_token", "network_seconds", "verify_overhead_seconds", "verify_seconds_per_token")
    columns = ("acceptance_rates", "weights", "max_draft_tokens", "min_goodput", *seconds[:2])

    def slower(data: Data, random: Random) -> Data | None:
        if data.get("per", "round") == "round":
            return None
        return scaled(dict.fromkeys(seconds, 2.0) | {"min_goodput": 0.5})(data, random)

    def halved(problem: FairGoodputProblem, objective: float) -> float:
        """Return the utility of half the rates."""
        from math import fsum, log

        if problem.fairness == 1.0:
            return objective - fsum(problem.weight) * log(2.0)
        return float(objective * 2.0 ** (problem.fairness - 1.0))

    return [
        Relation(kind=kind, name="clients permuted", reason=NAMES, equal=True,
                 change=permuted(*columns, of="acceptance_rates")),
        Relation(kind=kind, name="weights scaled", when="weights are given", reason="the utility is linear in them",
                 change=lambda data, random: scaled({"weights": 2.0})(data, random) if "weights" in data else None,
                 implied=lambda problem, objective: 2.0 * objective, equal=True),
        Relation(kind=kind, name="time scaled", when="rates are per second", reason="every rate is half as high",
                 change=slower, implied=halved, equal=True),
        Relation(kind=kind, name="one more token", reason=RELAXED, change=raised("budget_tokens", lambda n: n + 1)),
        Relation(kind=kind, name="caps raised", when="caps are given", reason=RELAXED,
                 change=raised("max_draft_tokens", lambda cap: cap + 1)),
        Relation(kind=kind, name="least rates lowered", when="least rates are given", reason=RELAXED,
                 change=raised("min_goodput", lambda rate: 0.9 * rate)),
        Relation(kind=kind, name="drafts likelier", when="rates are per round",
                 reason="every schedule gains from acceptance",
                 change=raised("acceptance_rates", likelier, lambda data: data.get("per") == "second")),
    ]  # fmt: skip


RELATIONS = tuple(_relations())
