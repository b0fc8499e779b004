"""Relations that hold between the optimal values of related `fair-goodput` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from math import fsum, log
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
from specopt.models.fair_goodput.problem import FairGoodputProblem

_SECONDS = (
    "draft_seconds_per_token",
    "network_seconds",
    "verify_overhead_seconds",
    "verify_seconds_per_token",
)


def _slower(data: Data, random: Random) -> Data | None:
    if data.get("per", "round") == "round":
        return None
    return scaled(dict.fromkeys(_SECONDS, 2.0) | {"min_goodput": 0.5})(data, random)


def _halved(problem: FairGoodputProblem, objective: float) -> float:
    """Return the utility of a plan after all its rates are halved.

    `objective` is the utility before the change.
    """
    if problem.fairness == 1.0:
        return objective - fsum(problem.weight) * log(2.0)
    return float(objective * 2.0 ** (problem.fairness - 1.0))


_keeps = relations_of(FairGoodputProblem)

RELATIONS = (
    _keeps(
        "clients permuted",
        NAMES,
        permuted("acceptance_rates", "weights", "max_draft_tokens", "min_goodput", *_SECONDS[:2]),
        equal=True,
    ),
    _keeps(
        "weights scaled",
        "the utility is linear in the weights",
        raised("weights", lambda weight: 2.0 * weight),
        when="weights are given",
        implied=times(2.0),
        equal=True,
    ),
    _keeps(
        "time scaled",
        "every rate is half as high",
        _slower,
        when="rates are per second",
        implied=_halved,
        equal=True,
    ),
    _keeps("one more token", RELAXED, one_more("budget_tokens")),
    _keeps("caps raised", RELAXED, one_more("max_draft_tokens"), when="caps are given"),
    _keeps(
        "minimum rates lowered",
        RELAXED,
        raised("min_goodput", lambda rate: 0.9 * rate),
        when="minimum rates are given",
    ),
    _keeps(
        "acceptance raised",
        "every schedule gains from acceptance",
        raised("acceptance_rates", likelier, lambda data: data.get("per") == "second"),
        when="rates are per round",
    ),
)
