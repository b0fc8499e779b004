"""Optima per second: proven from scratch, never below the rule that counts tokens per round, within
their time.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import fair_goodput as naive

from specopt import (
    FairGoodputPlan,
    FairGoodputProblem,
    Progress,
    Status,
    Termination,
    generate,
    solve,
)
from specopt.api.library import load_saved
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput import column_generation, dual, rounds
from specopt.solvers.fair_goodput.rounds import best_sum, drafts_of, rates_of


def timed(**parameters: Any) -> FairGoodputProblem:
    """A problem of the family per second."""
    problem = generate("fair-goodput/per-second", **parameters)
    assert isinstance(problem, FairGoodputProblem)
    return problem


@given(fair_goodputs(clients=(1, 4), budget=(0, 5), per=("second",), minimum=True))
def test_the_oracle_proves_it(problem: FairGoodputProblem) -> None:
    """Tests that no mixture of allocations beats the plan, by enumeration in code of its own, or
    that none exists.
    """
    result = solve(problem, "column-generation")
    form = problem.to_dict()
    short, doubt = naive.shortage(form)
    if short > -doubt and result.status is Status.INFEASIBLE:
        return
    assert short <= doubt and result.status is Status.OPTIMAL
    assert isinstance(result.plan, FairGoodputPlan) and result.objective is not None
    gap = naive.certificate(form, result.plan.to_dict()["schedule"])
    assert gap <= 1e-8 * max(1.0, abs(result.objective))


@given(fair_goodputs(clients=(1, 3), budget=(0, 5), per=("second",)), st.data())
def test_the_best_round_is_exact(problem: FairGoodputProblem, data: st.DataObject) -> None:
    """Tests that no allocation is worth more at any prices than the one found over ends of
    drafting.
    """
    size = problem.clients
    prices = np.array(data.draw(st.lists(st.floats(0.01, 10), min_size=size, max_size=size)))
    worth, allocation = best_sum(problem, prices, Budget(problem))
    form = problem.to_dict()
    assert worth == pytest.approx(float((prices @ naive.columns(form)).max()), rel=1e-12)
    assert worth == pytest.approx(float(prices @ naive.rates(form, allocation.tolist())), rel=1e-12)


@given(fair_goodputs(clients=(1, 4), budget=(0, 6), per=("second",)))
def test_the_sum_needs_one_round(problem: FairGoodputProblem) -> None:
    """Tests that threshold-greedy and column-generation find the same sum, and that one allocation
    has it.
    """
    problem = dataclasses.replace(problem, fairness=0.0)
    one, other = solve(problem, "threshold-greedy"), solve(problem, "column-generation")
    assert one.status is Status.OPTIMAL and other.status is Status.OPTIMAL
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    assert solve(problem).by == "auto (threshold-greedy)"
    assert isinstance(one.plan, FairGoodputPlan) and len(one.plan.schedule) == 1


@pytest.mark.parametrize("fairness", [0.0, 1.0, 2.0])
def test_never_below_tokens_per_round_at_any_budget(fairness: float) -> None:
    """Tests that the optimum is at least what the rule per round makes of any part of the
    budget.
    """
    for seed in range(3):
        problem = timed(clients=5, budget=16, rates="extreme", fairness=fairness, seed=seed)
        best = solve(problem)
        assert best.status is Status.OPTIMAL and best.objective is not None
        for budget in range(problem.budget_tokens + 1):
            rule = solve(
                dataclasses.replace(problem, budget_tokens=budget), "tokens-per-round"
            ).plan
            assert isinstance(rule, FairGoodputPlan)
            assert problem.violations(rule) == []
            assert problem.evaluate(rule).objective <= best.objective + 1e-9 * max(
                1.0, abs(best.objective)
            )


def test_rounds_of_no_length_but_one_second_are_rounds() -> None:
    """Tests that where every round lasts one second the optimum per second is the one per round."""
    problem = generate("fair-goodput/paper-5", clients=4, budget=9, rates="wide")
    assert isinstance(problem, FairGoodputProblem)
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
    assert (alone.explanation or "").startswith(
        "client 1 needs 500 tokens per second, but gets at most "
    )
    most = [float(best_sum(problem, np.eye(3)[i], Budget(problem))[0]) for i in range(3)]
    together = solve(dataclasses.replace(problem, min_goodput=0.999 * np.array(most)))
    assert together.status is Status.INFEASIBLE
    assert "no mixture of rounds reaches all minimum rates" in (together.explanation or "")
    assert "the best mixture reaches 84.2" in (together.explanation or "")


@pytest.mark.parametrize("name", ["fair-goodput/recorded/N900-g1", "fair-goodput/recorded/N900-g4"])
def test_drafting_nothing_is_proven(name: str) -> None:
    """Tests that 900 clients whose drafts cost more than they yield draft nothing, with proof."""
    problem = load_saved(name)
    assert isinstance(problem, FairGoodputProblem)
    result = solve(problem)
    assert result.status is Status.OPTIMAL and isinstance(result.plan, FairGoodputPlan)
    assert not result.plan.mean_draft_tokens.any()


@pytest.mark.parametrize("verify", [2e-4, 2e-6])
@pytest.mark.parametrize("clients", [1000, 10000])
def test_many_clients(clients: int, verify: float) -> None:
    """Tests that the first plan of the default is at least every plain plan, and that few rounds
    bring the bound next to the last.
    """
    problem = dataclasses.replace(
        timed(clients=clients, budget=4 * clients), verify_seconds_per_token=verify
    )
    seen: list[Progress] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress)
        return progress.gap is not None and progress.gap <= 1e-3

    result = solve(problem, callback=stop)
    assert result.gap is not None and result.gap <= 1e-3 and len(seen) <= 20
    assert isinstance(result.plan, FairGoodputPlan) and problem.violations(result.plan) == []
    for tokens in range(5):
        same = rates_of(problem, np.full(clients, tokens))
        assert seen[0].objective is not None
        assert (
            seen[0].objective >= problem.utility(same) * (1.0 - 1e-12) or tokens == 3
        )  # no power of two


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
    assert (
        problem.gap(
            solve(dataclasses.replace(problem, min_goodput=None)).objective or 0.0,
            result.bound or 0.0,
        )
        <= 1e-9
    )


@given(fair_goodputs(clients=(1, 4), budget=(0, 6), per=("second",)), st.data())
def test_listed_drafts_respect_the_caps(problem: FairGoodputProblem, data: st.DataObject) -> None:
    """Tests that the best round is chosen among drafts that the caps and the budget allow."""
    size = problem.clients
    prices = np.array(data.draw(st.lists(st.floats(0.01, 10), min_size=size, max_size=size)))
    listed: list[Any] = []

    def list_drafts(most: Any) -> Any:
        listed.append(most)
        return drafts_of(most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "drafts_of", list_drafts)
        best_sum(problem, prices, Budget(problem))
    assert (listed[0] <= problem.max_tokens).all()


def test_every_round_is_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a single round is proven without pricing any round twice, and that only the last
    plan is judged.
    """
    problem = timed(seed=1)
    priced: list[bytes] = []
    judged: list[Any] = []
    judge = FairGoodputProblem.evaluate

    def priced_sum(one: FairGoodputProblem, prices: Any, budget: Budget) -> Any:
        priced.append(prices.tobytes())
        return best_sum(one, prices, budget)

    def evaluate(one: FairGoodputProblem, plan: FairGoodputPlan) -> Any:
        judged.append(plan)
        return judge(one, plan)

    monkeypatch.setattr(column_generation, "best_sum", priced_sum)
    monkeypatch.setattr(FairGoodputProblem, "evaluate", evaluate)
    result = solve(problem, time_limit=20.0)
    assert result.status is Status.OPTIMAL and result.stats["mixtures"] == 0
    assert len(priced) == len(set(priced)) > 1
    assert len(judged) == 1


@pytest.mark.parametrize("per", ["round", "second"])
@pytest.mark.parametrize("least", [None, [0.5] * 8])
def test_an_interrupted_search_returns_a_plan(
    per: Any, least: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the search of a small problem, which records no plan before it starts, records one
    if it is interrupted.
    """
    problem = dataclasses.replace(timed(seed=1), per=per, min_goodput=least)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(column_generation, "best_sum", interrupted)
    monkeypatch.setattr(dual, "optimise", interrupted)
    result = solve(problem, time_limit=20.0)
    assert result.termination is Termination.INTERRUPTED
    assert result.plan is not None and not problem.violations(result.plan)
