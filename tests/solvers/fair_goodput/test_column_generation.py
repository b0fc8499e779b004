"""Optima per second: sums, rounds of one second, few rounds, and least rates."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given

from specopt import FairGoodputProblem, Status
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.rounds import Rounds


def timed(**parameters: Any) -> FairGoodputProblem:
    """A problem of the family per second."""
    problem: FairGoodputProblem = generate("fair-goodput/per-second", **parameters)
    return problem


@given(fair_goodputs(clients=(1, 4), budget=(0, 6), per=("second",)))
def test_the_sum_needs_one_round(problem: FairGoodputProblem) -> None:
    """Tests that threshold-greedy, the default, and column-generation find the same sum, and that
    one allocation has it.
    """
    problem = dataclasses.replace(problem, fairness=0.0)
    one, other = solve(problem), solve(problem, "column-generation")
    assert one.by == "auto (threshold-greedy)"
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    assert len(one.plan.schedule) == 1


def test_rounds_of_no_length_but_one_second_are_rounds() -> None:
    """Tests that where every round lasts one second the optimum per second is the one per round."""
    problem = generate("fair-goodput/paper-5", clients=4, budget=9, rates="wide")
    zeros = np.zeros(4)
    second = dataclasses.replace(
        problem,
        per="second",
        draft_seconds_per_token=zeros,
        network_seconds=zeros,
        verify_overhead_seconds=1.0,
        verify_seconds_per_token=0.0,
    )
    assert solve(second, "column-generation").objective == pytest.approx(
        solve(problem).objective, abs=1e-9
    )


@pytest.mark.parametrize("rates", ["wide", "extreme", "equal"])
@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0, 3.0])
def test_32_clients_take_few_rounds(rates: str, fairness: float) -> None:
    """Tests that N = 32 and C = 128 are proven by some tens of rounds, or greedily."""
    result = solve(timed(clients=32, budget=128, rates=rates, fairness=fairness, seed=5))
    assert result.status is Status.OPTIMAL
    assert result.stats.get("rounds", 0) <= 40


def test_impossible_least_rates_are_named() -> None:
    """Tests that an infeasible result says who cannot get what even alone, or what all get
    together.
    """
    problem = timed(clients=3, budget=6, seed=1)
    alone = solve(dataclasses.replace(problem, min_goodput=np.array([0.0, 500.0, 1.0])))
    assert alone.status is Status.INFEASIBLE
    assert alone.explanation.startswith("client 1 needs 500 tokens per second, and gains at most ")
    most = [float(Rounds(problem).best_sum(np.eye(3)[i], Budget(problem))[0]) for i in range(3)]
    together = solve(dataclasses.replace(problem, min_goodput=0.999 * np.array(most)))
    assert together.status is Status.INFEASIBLE
    assert "no mixture of rounds gives all minimum rates" in together.explanation
    assert "at best" in together.explanation


def test_large_problems_are_refused_with_a_way_out() -> None:
    """Tests that what is too large per second still has a method."""
    problem = timed(clients=1000, budget=4000)
    assert solve(problem, time_limit=600.0).plan is not None


def test_least_rates_that_do_not_bind() -> None:
    """Tests that equal clients with least rates that they all exceed are soon proven, as without
    them.
    """
    clients = 40
    problem = FairGoodputProblem(
        acceptance_rates=np.full(clients, 0.7),
        budget_tokens=clients - 1,
        fairness=60.0,
        per="second",
        draft_seconds_per_token=np.full(clients, 0.001),
        network_seconds=np.full(clients, 0.2),
        verify_overhead_seconds=0.03,
        verify_seconds_per_token=0.0005,
        min_goodput=np.full(clients, 0.5),
    )
    result = solve(problem)
    assert result.status is Status.OPTIMAL and result.stats["mixtures"] <= 3
    free = solve(dataclasses.replace(problem, min_goodput=None))
    assert problem.gap(free.objective, result.bound) <= 1e-9
