"""The scheduler with rates that were promised, and in real time: against the optimum of whoever
knows the clients.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import specopt
from specopt.instances.fair_goodput.hard import minimum_rates, per_second
from specopt.models.acceptance import expected_tokens
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.models.fields import Floats
from specopt.online import GoodputScheduler


def play(
    problem: FairGoodputProblem,
    scheduler: GoodputScheduler,
    rounds: int,
    skipped: int = 0,
    seed: int = 0,
) -> Floats:
    """Play rounds with random acceptances; return the mean rates, in the unit of the problem, after
    those skipped.
    """
    draw = np.random.default_rng(seed)
    tokens, time = np.zeros(problem.clients), 0.0
    for turn in range(rounds):
        drafts = scheduler.allocate()
        assert drafts.sum() <= problem.budget_tokens
        accepted = np.minimum(draw.geometric(1.0 - problem.acceptance_rates) - 1, drafts)
        scheduler.observe(accepted)
        if turn >= skipped:
            tokens += expected_tokens(problem.acceptance_rates, drafts)
            time += problem.round_seconds(drafts) if problem.per == "second" else 1.0
    return tokens / time


def timing(problem: FairGoodputProblem) -> dict[str, Any]:
    """What the scheduler is told of a problem per second."""
    names = (
        "per",
        "draft_seconds_per_token",
        "network_seconds",
        "verify_overhead_seconds",
        "verify_seconds_per_token",
    )
    return {name: getattr(problem, name) for name in names}


def best(problem: FairGoodputProblem) -> float:
    """The utility of whoever knows the acceptance rates."""
    plan = specopt.solve(problem).plan
    assert isinstance(plan, FairGoodputPlan)
    return problem.utility(plan.goodput)


@pytest.mark.parametrize("fairness", [0.0, 1.0])
def test_promises_are_kept(fairness: float) -> None:
    """Tests that promised rates are kept within some per cent, at no loss; without the promise they
    are far away.
    """
    problem = minimum_rates(rates="wide", tightness=0.7, fairness=fairness, seed=3)
    assert problem.min_goodput is not None
    promised = GoodputScheduler(8, 20, fairness=fairness, min_goodput=problem.min_goodput)
    rates = play(problem, promised, 2500)
    assert (rates >= 0.98 * problem.min_goodput).all()
    assert problem.utility(rates) >= best(problem) - 0.02 * rates.sum()
    rates = play(problem, GoodputScheduler(8, 20, fairness=fairness), 300)
    assert (rates < 0.9 * problem.min_goodput).any()


def test_promises_beyond_the_budget() -> None:
    """Tests that promises that cannot all be kept are missed alike, and that no draft goes
    elsewhere.
    """
    problem = FairGoodputProblem(acceptance_rates=np.full(5, 0.8), budget_tokens=8)
    rates = play(
        problem,
        GoodputScheduler(5, 8, fairness=0.0, min_goodput=[3.0, 3.0, 3.0, 3.0, 0.0]),
        1000,
        skipped=200,
    )
    assert rates[:4] == pytest.approx(expected_tokens(0.8, 2), abs=0.1)
    assert rates[4] < 1.1


@pytest.mark.parametrize("seed", [1, 2])
def test_per_second(seed: int) -> None:
    """Tests that the scheduler comes close to the optimum per second, which the rule per round is
    far away from.
    """
    problem = per_second(seed=seed)
    optimum = best(problem)
    assert play_gap(problem, optimum, GoodputScheduler(8, 20, **timing(problem))) < 0.02
    assert play_gap(problem, optimum, GoodputScheduler(8, 20)) > 1.0


def play_gap(problem: FairGoodputProblem, optimum: float, scheduler: GoodputScheduler) -> float:
    """How far the rates of rounds 200 to 500 are from the optimum."""
    return optimum - problem.utility(play(problem, scheduler, 500, skipped=200))


def test_promises_per_second() -> None:
    """Tests that a rate per second that was promised is kept, by the scheduler's own account,
    too.
    """
    problem = per_second(seed=1)
    plan = specopt.solve(problem).plan
    assert isinstance(plan, FairGoodputPlan)
    favoured, least = 7, np.zeros(8)
    least[favoured] = 1.3 * plan.goodput[favoured]
    optimum = best(dataclasses.replace(problem, min_goodput=least))
    scheduler = GoodputScheduler(8, 20, **timing(problem), min_goodput=least)
    rates = play(problem, scheduler, 500, skipped=200)
    assert rates[favoured] >= 0.98 * least[favoured]
    assert problem.utility(rates) >= optimum - 0.05
    assert scheduler.goodput[favoured] == pytest.approx(rates[favoured], rel=0.05)


def test_a_draft_that_is_due_takes_the_place_of_another() -> None:
    """Tests that a client that is hopeless is tested now and then, within a budget that the others
    use whole.
    """
    scheduler = GoodputScheduler(
        3,
        4,
        per="second",
        draft_seconds_per_token=[0.01] * 3,
        network_seconds=[0.01] * 3,
        verify_overhead_seconds=0.1,
        verify_seconds_per_token=0.001,
    )
    draw = np.random.default_rng(0)
    rounds = []
    for _ in range(140):
        rounds.append(scheduler.allocate())
        assert rounds[-1].sum() <= 4
        scheduler.observe(np.minimum(draw.geometric([0.1, 0.1, 0.98]) - 1, rounds[-1]))
    later = np.array(rounds[10:])
    assert sorted(set(later[:, 2].tolist())) == [0, 1]
    assert set(later.sum(axis=1).tolist()) == {4}


def test_only_those_who_are_ready_take_time() -> None:
    """Tests that a round without the slow clients does not wait for them, and that a snapshot goes
    on the same.
    """
    problem = per_second(seed=0)
    scheduler = GoodputScheduler(8, 20, **timing(problem), min_goodput=[0.0] * 7 + [8.0])
    play(problem, scheduler, 20)
    twin = GoodputScheduler.from_state(json.loads(json.dumps(scheduler.state())))
    for ready in (range(8), [2, 5], []):
        drafts = scheduler.allocate(ready)
        assert twin.allocate(ready).tolist() == drafts.tolist()
        assert set(np.flatnonzero(drafts).tolist()) <= set(ready)
        assert drafts.sum() <= 20
        for one in (scheduler, twin):
            one.observe(dict.fromkeys(ready, 0))
    assert twin.state() == scheduler.state()
