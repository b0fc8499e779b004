"""Small instances of `fair-goodput` for the conformance suite."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from specopt import FairGoodputPlan, FairGoodputProblem, Problem, Schedule, generate, load

EDGE = Path(__file__).parents[1] / "data" / "edges" / "fair-goodput-refused-half-way.json"


def declared(
    problem: FairGoodputProblem, schedule: Schedule, factor: float = 1.0
) -> FairGoodputPlan:
    """Return the plan that a schedule realises, its goodput declared with a factor."""
    goodput, tokens = problem.realised(schedule)
    return FairGoodputPlan(goodput=factor * goodput, mean_draft_tokens=tokens, schedule=schedule)


def _instances() -> dict[str, Problem]:
    """Small instances of `fair-goodput`: per round and second, utilities, caps, least rates, none
    of either.
    """
    base = generate("fair-goodput/paper-5", clients=3, budget=7, rates="wide")
    timed = generate("fair-goodput/per-second", clients=3, budget=6, seed=1)
    assert isinstance(base, FairGoodputProblem) and isinstance(timed, FairGoodputProblem)
    replace = dataclasses.replace
    return {
        "base": base,
        "per second": timed,
        "sum per second": replace(timed, fairness=0.0),
        "one client": generate("fair-goodput/paper-5", clients=1, budget=5),
        "one client per second": generate("fair-goodput/per-second", clients=1, budget=5),
        "equal clients": replace(base, acceptance_rates=[0.5] * 3),
        "weighted sum": replace(base, fairness=0.0, weights=[1.0, 2.0, 0.5]),
        "much fairness": replace(base, fairness=5.0),
        "little fairness per second": replace(timed, fairness=0.25, weights=[1.0, 2.0, 0.5]),
        "no budget": replace(base, budget_tokens=0),
        "no budget per second": replace(timed, budget_tokens=0),
        "no acceptance": replace(base, acceptance_rates=[0.0] * 3),
        "some acceptance per second": replace(timed, acceptance_rates=[0.0, 0.9, 0.0]),
        "caps": replace(base, max_draft_tokens=[0, 1, 9]),
        "caps below the budget": replace(base, max_draft_tokens=[1, 1, 2]),
        "least rates": replace(base, fairness=2.0, min_goodput=[1.35, 0.0, 2.0]),
        "least rates per second": replace(timed, min_goodput=[7.0, 3.0, 0.0]),
        "least rates for a sum per second": replace(
            timed, fairness=0.0, min_goodput=[7.0, 3.0, 0.0]
        ),
        "steep, and long rounds": load(
            EDGE, FairGoodputProblem
        ),  # per round its utility is out of range
        "infeasible": replace(base, min_goodput=[1.4, 2.0, 6.0]),
        "infeasible for one": replace(base, min_goodput=[1.5, 0.0, 0.0]),
        "infeasible per second": replace(timed, min_goodput=[60.0, 60.0, 60.0]),
    }


INSTANCES = _instances()
