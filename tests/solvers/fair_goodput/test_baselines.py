"""Fixed, random and constant allocations: what they are, and that the last is the best of its
kind.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from helpers.fair_goodput_corners import as_steep
from helpers.untyped import generate, solve
from hypothesis import given, settings
from oracles import fair_goodput as naive

from specopt import FairGoodputProblem, Status
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs
from specopt.solvers.fair_goodput.baselines import Random


@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0, 4.0, 12.0, 40.0, 100.0])
@settings(max_examples=15)
@given(problem=fair_goodputs(clients=(1, 3), budget=(0, 6)))
def test_best_constant_however_steep(fairness: float, problem: FairGoodputProblem) -> None:
    """Tests that no single allocation has a larger utility, per round and per second, to all digits
    of the common rate at every fairness.
    """
    steep = as_steep(problem, fairness)
    result, form = solve(steep, "best-constant"), steep.to_dict()
    best = max(naive.utility(form, column) for column in naive.columns(form).T)
    assert steep.gap(result.objective, best) <= 1e-12
    assert len(result.plan.schedule) == 1


@given(fair_goodputs(clients=(1, 12), budget=(0, 60)))
def test_nothing_beats_the_default_method(problem: FairGoodputProblem) -> None:
    """Tests that every baseline stays below the optimum and its bound."""
    best = solve(problem)
    assert best.status is Status.OPTIMAL and best.bound >= best.objective
    rules = ["fixed", "random", "best-constant"]
    for method in rules if problem.per == "round" else [*rules, "tokens-per-round"]:
        rival = solve(problem, method).objective
        assert rival <= best.objective + 1e-9 * max(1.0, abs(best.objective))


def test_fixed_divides_evenly_and_rounds_down() -> None:
    """Tests that everybody drafts floor(C / N) tokens, or up to the cap."""
    problem = FairGoodputProblem(
        acceptance_rates=np.full(4, 0.5), budget_tokens=11, max_draft_tokens=np.array([1, 5, 5, 0])
    )
    plan = solve(problem, "fixed").plan
    assert plan.mean_draft_tokens.tolist() == [1, 2, 2, 0]


def test_random_throws_the_whole_budget() -> None:
    """Tests that every round spends the budget where no cap binds, evenly in the mean, and that the
    seed decides.
    """
    problem = generate("fair-goodput/paper-5", clients=4, budget=24)
    result = solve(problem, Random(rounds=400), seed=3)
    assert all(allocation.sum() == 24 for _, allocation in result.plan.schedule.allocations())
    assert result.plan.mean_draft_tokens == pytest.approx(np.full(4, 6.0), rel=0.1)
    assert len(result.plan.schedule) == 400
    assert solve(problem, Random(rounds=400), seed=4).plan != result.plan


def test_random_per_second_counts_rounds_alike() -> None:
    """Tests that long rounds get more time, so that each round is drawn once."""
    problem = generate("fair-goodput/per-second", clients=3, budget=9)
    plan = solve(problem, "random", seed=1).plan
    seconds = np.array(
        [problem.round_seconds(allocation) for _, allocation in plan.schedule.allocations()]
    )
    assert plan.schedule.share == pytest.approx(seconds / seconds.sum())
    per_round = solve(dataclasses.replace(problem, per="round"), "random", seed=1).plan
    assert plan.mean_draft_tokens == pytest.approx(per_round.mean_draft_tokens)


@settings(max_examples=40)
@given(fair_goodputs(clients=(1, 5), budget=(0, 12), per=("second",)))
def test_rounds_as_short_as_any_bound_rates_per_second(problem: FairGoodputProblem) -> None:
    """Tests that the bound of the rule per round is above the optimum per second, and exact without
    drafts.
    """
    found, best = solve(problem, "tokens-per-round"), solve(problem)
    assert found.bound >= best.objective - 1e-9 * abs(best.objective)
    alone = dataclasses.replace(problem, budget_tokens=0)
    assert solve(alone, "tokens-per-round").gap == pytest.approx(0.0, abs=1e-9)
