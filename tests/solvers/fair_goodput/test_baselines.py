"""Fixed, random and constant allocations: what they are, and that the last is the best of its
kind.
"""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from oracles import fair_goodput as naive

from specopt import FairGoodputPlan, FairGoodputProblem, InvalidInput, generate, solve
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs
from specopt.solvers.fair_goodput.baselines import Random


@given(fair_goodputs(clients=(1, 3), budget=(0, 6)))
def test_best_constant(problem: FairGoodputProblem) -> None:
    """Tests that no single allocation has a larger utility, per round and per second."""
    result = solve(problem, "best-constant")
    form = problem.to_dict()
    best = max(naive.utility(form, column) for column in naive.columns(form).T)
    assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert isinstance(result.plan, FairGoodputPlan)
    assert len(result.plan.schedule) == 1


@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0, 4.0, 12.0, 40.0, 100.0])
@settings(max_examples=15)
@given(problem=fair_goodputs(clients=(1, 3), budget=(0, 6)))
def test_best_constant_however_steep(fairness: float, problem: FairGoodputProblem) -> None:
    """Tests that the common rate of the best single allocation has all its digits at every
    fairness.
    """
    steep = None
    with contextlib.suppress(InvalidInput):
        steep = dataclasses.replace(problem, fairness=fairness)
    assume(steep is not None)
    assert steep is not None
    result = solve(steep, "best-constant")
    best = max(
        naive.utility(steep.to_dict(), column) for column in naive.columns(steep.to_dict()).T
    )
    assert result.objective is not None and steep.gap(result.objective, best) <= 1e-12


@given(fair_goodputs(clients=(1, 12), budget=(0, 60)))
def test_nothing_beats_the_default_method(problem: FairGoodputProblem) -> None:
    """Tests that every baseline stays below the optimum and its bound."""
    best = solve(problem)
    assert best.objective is not None
    for method in ("fixed", "random", "best-constant"):
        rival = solve(problem, method).objective
        assert rival is not None and rival <= best.objective + 1e-9 * max(1.0, abs(best.objective))


def test_fixed_divides_evenly_and_rounds_down() -> None:
    """Tests that everybody drafts floor(C / N) tokens, or up to the cap."""
    problem = FairGoodputProblem(
        acceptance_rates=np.full(4, 0.5), budget_tokens=11, max_draft_tokens=np.array([1, 5, 5, 0])
    )
    plan = solve(problem, "fixed").plan
    assert isinstance(plan, FairGoodputPlan)
    assert plan.mean_draft_tokens.tolist() == [1, 2, 2, 0]


def test_random_throws_the_whole_budget() -> None:
    """Tests that every round spends the budget where no cap binds, evenly in the mean, and that the
    seed decides.
    """
    problem = generate("fair-goodput/paper-5", clients=4, budget=24)
    result = solve(problem, Random(rounds=400), seed=3)
    assert isinstance(result.plan, FairGoodputPlan)
    assert all(allocation.sum() == 24 for _, allocation in result.plan.schedule.allocations())
    assert result.plan.mean_draft_tokens == pytest.approx(np.full(4, 6.0), rel=0.1)
    assert len(result.plan.schedule) == 400
    assert solve(problem, Random(rounds=400), seed=4).plan != result.plan


def test_random_per_second_counts_rounds_alike() -> None:
    """Tests that long rounds get more time, so that each round is drawn once."""
    problem = generate("fair-goodput/per-second", clients=3, budget=9)
    assert isinstance(problem, FairGoodputProblem)
    plan = solve(problem, "random", seed=1).plan
    assert isinstance(plan, FairGoodputPlan)
    seconds = np.array(
        [problem.round_seconds(allocation) for _, allocation in plan.schedule.allocations()]
    )
    assert plan.schedule.share == pytest.approx(seconds / seconds.sum())
    per_round = solve(dataclasses.replace(problem, per="round"), "random", seed=1).plan
    assert isinstance(per_round, FairGoodputPlan)
    assert plan.mean_draft_tokens == pytest.approx(per_round.mean_draft_tokens)


@settings(max_examples=40)
@given(fair_goodputs(clients=(1, 5), budget=(0, 12), per=("second",)))
def test_rounds_as_short_as_any_bound_rates_per_second(problem: FairGoodputProblem) -> None:
    """Tests that the bound of the rule per round is above the optimum per second, and exact without
    drafts.
    """
    found, best = solve(problem, "tokens-per-round"), solve(problem)
    assert found.bound is not None and best.objective is not None
    assert found.bound >= best.objective - 1e-9 * abs(best.objective)
    alone = dataclasses.replace(problem, budget_tokens=0)
    assert solve(alone, "tokens-per-round").gap == pytest.approx(0.0, abs=1e-9)
