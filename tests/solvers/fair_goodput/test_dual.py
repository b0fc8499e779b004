"""The optimum per round: its certificates, what a convex program finds, and its properties."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given

from specopt import DraftAllocationProblem, FairGoodputProblem, Status
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs
from specopt.models.acceptance import expected_tokens
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.dual import optimise
from specopt.solvers.fair_goodput.region import region_of

TABLE_1 = [(4, 24), (4, 28), (8, 16), (8, 20)]
RATES = ["equal", "mild", "wide", "extreme"]


@given(fair_goodputs(clients=(1, 40), budget=(0, 300), per=("round",), minimum=True))
def test_both_certificates(problem: FairGoodputProblem) -> None:
    """Tests that duality gap and Frank-Wolfe gap are never negative and at most 1e-11, the bound
    above the plan.
    """
    result = solve(problem, "dual")
    if result.status is Status.INFEASIBLE:
        return
    assert result.bound >= result.objective
    scale = max(1.0, abs(result.objective))
    assert 0 <= result.stats["duality_gap"] <= 1e-11 * scale
    assert result.stats["frank_wolfe_gap"] >= 0
    slope = float(
        problem.weight @ result.plan.goodput ** (1 - problem.fairness)
    )  # the size of grad U . x
    assert result.stats["frank_wolfe_gap"] <= 1e-9 * max(scale, slope)


@pytest.mark.parametrize(("clients", "budget"), TABLE_1)
@pytest.mark.parametrize("name", RATES)
def test_table_1(clients: int, budget: int, name: str) -> None:
    """Tests that the paper's configurations are solved and that the convex program agrees."""
    problem = generate("fair-goodput/paper-5", clients=clients, budget=budget, rates=name)
    result, other = solve(problem), solve(problem, "convex")
    assert result.by == "auto (dual)"
    assert result.status is other.status is Status.OPTIMAL
    assert result.objective == pytest.approx(other.objective, rel=1e-6, abs=1e-6)


def test_equal_clients_share_equally() -> None:
    """Tests that clients alike get alike: 16 tokens for 8 clients of rate 0.75."""
    plan = solve(generate("fair-goodput/paper-5", clients=8, budget=16, rates="equal")).plan
    assert plan.mean_draft_tokens == pytest.approx(np.full(8, 2.0))
    assert plan.goodput == pytest.approx(np.full(8, 2.3125))
    assert len(plan.schedule) == 1


def test_two_clients_by_hand() -> None:
    """Tests that one token between rates 0.5 and 0.25 splits where a / x is equal, or goes to one
    alone.
    """
    problem = FairGoodputProblem(acceptance_rates=np.array([0.5, 0.25]), budget_tokens=1)
    plan = solve(problem).plan
    assert plan.mean_draft_tokens.tolist() == [1.0, 0.0]  # 0.5 / 1.5 > 0.25 / 1
    plan = solve(dataclasses.replace(problem, acceptance_rates=np.array([0.5, 0.4]))).plan
    s = plan.mean_draft_tokens[0]
    assert 0.5 / (1 + 0.5 * s) == pytest.approx(0.4 / (1 + 0.4 * (1 - s)), rel=1e-9)


@given(fair_goodputs(clients=(1, 12), budget=(0, 60), per=("round",)))
def test_without_fairness_it_is_draft_allocation(problem: FairGoodputProblem) -> None:
    """Tests that the weighted sum of rates is the best single round's (Eq. 5), and that one
    allocation attains it.
    """
    result = solve(dataclasses.replace(problem, fairness=0.0), "dual")
    allocation = DraftAllocationProblem(
        acceptance_rates=problem.acceptance_rates,
        weights=problem.weight,
        budget_tokens=problem.budget_tokens,
        max_draft_tokens=problem.max_draft_tokens,
    )
    best = solve(allocation)
    assert result.objective == pytest.approx(best.objective, rel=1e-12)
    assert len(result.plan.schedule) == 1


@given(fair_goodputs(clients=(1, 5), budget=(0, 12), per=("round",)))
def test_little_budget_left(problem: FairGoodputProblem) -> None:
    """Tests that with more budget than the caps take, everybody drafts all that is worth
    something.
    """
    caps = np.arange(problem.clients) % 3
    plenty = dataclasses.replace(problem, max_draft_tokens=caps, budget_tokens=1000)
    plan = solve(plenty, "dual").plan
    assert plan.goodput == pytest.approx(expected_tokens(plenty.acceptance_rates, caps), rel=1e-15)


@given(fair_goodputs(clients=(1, 6), budget=(0, 20), per=("round",)))
def test_least_rates_already_met_change_nothing(problem: FairGoodputProblem) -> None:
    """Tests that the optimum with its own rates as least rates is the optimum."""
    result = solve(problem, "dual")
    again = solve(dataclasses.replace(problem, min_goodput=result.plan.goodput), "dual")
    assert again.status is Status.OPTIMAL
    assert again.objective == pytest.approx(result.objective, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("least", "message"),
    [
        (
            [0.0, 1.5, 0.0],
            "client 1 needs 1.5 tokens per round, but gets at most 1.33325 with 6 draft tokens",
        ),
        (
            [1.9, 0.0, 2.9],
            (
                "the minimum rates need 6.92346 draft tokens per round, but only 6 are available:"
                " client 2 needs 3.5.* client 0 needs 3.4"
            ),
        ),
        ([2.5, 1.4, 9.0], "client 0 needs 2.5 .*; client 1 needs 1.4 .*; client 2 needs 9 "),
    ],
)
def test_impossible_least_rates_are_named(least: list[float], message: str) -> None:
    """Tests that an infeasible result says which clients need what, and what there is."""
    problem = FairGoodputProblem(
        acceptance_rates=np.array([0.5, 0.25, 0.75]), budget_tokens=6, min_goodput=np.array(least)
    )
    for method in ("dual", "convex"):
        result = solve(problem, method)
        assert result.status is Status.INFEASIBLE
        assert re.search(message, result.explanation or ""), result.explanation


def test_rates_next_to_1() -> None:
    """Tests that acceptance next to 1 loses no digits: every token gains one token."""
    problem = FairGoodputProblem(
        acceptance_rates=np.array([1 - 2**-53, 1 - 1e-12]), budget_tokens=10
    )
    plan = solve(problem).plan
    assert plan.goodput == pytest.approx([6.0, 6.0], rel=1e-9)


def test_interrupting_between_prices() -> None:
    """Tests that no time gives a quick plan that keeps every limit, least rates too."""
    problem = FairGoodputProblem(
        acceptance_rates=np.full(5000, 0.5), budget_tokens=9000, min_goodput=np.full(5000, 1.25)
    )
    result = solve(problem, time_limit=0)
    assert result.status is Status.FEASIBLE
    assert result.plan.goodput == pytest.approx(np.full(5000, 1.25))


def test_sampled_first_price() -> None:
    """Tests that thousands of clients in sorted order, whom a sample meets unevenly, are solved as
    any others.
    """
    rates = np.sort(np.random.default_rng(3).beta(2, 1, 5000))
    sorted_problem = FairGoodputProblem(acceptance_rates=rates, budget_tokens=11_111)
    region = region_of(sorted_problem)
    best = optimise(sorted_problem, region, Budget(sorted_problem))
    assert best.tokens.sum() == pytest.approx(11_111, rel=1e-12)
    assert best.gap <= 1e-11 * 5000
    assert best.passes <= 40


@pytest.mark.slow
def test_a_million_clients() -> None:
    """Tests that a million clients are proven, in a schedule of two changes a client."""
    rates = np.random.default_rng(1).uniform(0.05, 0.95, 1_000_000)
    problem = FairGoodputProblem(acceptance_rates=rates, budget_tokens=4_000_000)
    result = solve(problem)
    assert result.status is Status.OPTIMAL
    assert result.stats["duality_gap"] <= 1e-11 * result.objective
    assert result.stats["changes"] <= 2_000_000
