"""Continuous serving: the exact method by two routes, the scheduler above it, the bound below
it.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, load, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import continuous_serving as naive
from oracles.serving_latency import verify_flops
from strategies.serving_plans import changing as problems_with_plans

from specopt import ContinuousServingPlan, ContinuousServingProblem, Status
from specopt.api.library import load_saved
from specopt.kinds.continuous_serving.strategies import problems
from specopt.models.continuous_serving.problem import Phase
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.bound import served_bound
from specopt.solvers.continuous_serving.every_step import EveryStep
from specopt.solvers.continuous_serving.method import offer_first_plan
from specopt.solvers.continuous_serving.prepare import Prepared, prepare
from specopt.solvers.serving_method import able
from specopt.solvers.serving_prices import KNOTS, Prices

Case = tuple[ContinuousServingProblem, ContinuousServingPlan]
EXECUTED = {"1.1B-13B-s1": 131.836, "68M-7B-s1": 55.473}
"""Seconds of batching anew with final lengths reserved, at one speculation length for all steps."""


def bound(problem: ContinuousServingProblem) -> float:
    """The bound over all mechanisms that have plans."""
    return min(served_bound(prepared, Budget(problem)) for prepared in able(problem, Prepared))


def lists(choices: list[Any], tasks: int) -> list[dict[str, Any]]:
    """All phases of one step: ordered partitions, lengths of every batch."""
    found = []
    for slots in itertools.product(range(tasks), repeat=tasks):
        if set(slots) != set(range(max(slots) + 1)):
            continue
        batches = [[k for k in range(tasks) if slots[k] == m] for m in range(max(slots) + 1)]
        for lengths in itertools.product(choices, repeat=len(batches)):
            found.append({"batches": batches, "speculation_length": list(lengths)})
    return found


@settings(max_examples=12, deadline=None)
@given(
    problems(
        tasks=(1, 2),
        max_output=3,
        max_length=2,
        mechanisms=["pipelined", "sequential", "autoregressive"],
    )
)
def test_every_step_is_the_least_of_all_plans(problem: ContinuousServingProblem) -> None:
    """Tests that the optimum is the least of all plans that there are of so few steps, each worked
    out alone.
    """
    problem = dataclasses.replace(problem, arrival_seconds=None, min_speculation_length=1)
    if problem.output_lengths == "predicted":
        problem = dataclasses.replace(problem, output_lengths="known")
    found = solve(problem, "every-step")
    assert found.gap == 0.0
    data = problem.to_dict()
    drafting = problem.mechanism != "autoregressive"
    phases = lists([1, 2][: problem.max_speculation_length] if drafting else [0], problem.tasks)
    slowest = 1.0 if not drafting else min(naive.gain(data, k, 1) for k in range(problem.tasks))
    steps = max(1, int(np.ceil(problem.planned_output_tokens.max() / slowest - 1e-12)))
    least = np.inf
    for chosen in itertools.product(phases, repeat=steps):
        planned = {
            "speculation_length": int(drafting),
            "phases": [phase | {"first_step": n} for n, phase in enumerate(chosen, start=1)],
            "bandwidth_share": found.plan.to_dict()["bandwidth_share"],
        }
        value = naive.evaluate(data, planned)
        least = min(least, value["objective"] if value["fits"] else np.inf)
    assert found.objective == pytest.approx(least, rel=1e-9)


def every_task_alone(problem: ContinuousServingProblem) -> list[ContinuousServingPlan]:
    """Plans in which every task is a batch, with the shortest drafts that are allowed, by
    mechanism.
    """
    alone, even = tuple((k,) for k in range(problem.tasks)), np.full(problem.tasks, 1.0)
    found = []
    for prepared in (prepare(problem, mechanism) for mechanism in problem.mechanisms):
        length = prepared.served_lengths[0]
        phase = Phase(first_step=1, batches=alone, speculation_length=length)
        found.append(prepared.plan([phase], prepared.lengths[0], even / problem.tasks))
    return found


@settings(max_examples=12, deadline=None)
@given(problems(tasks=(1, 3), max_output=5, max_length=2))
def test_bound_below_optimum_below_heuristic(problem: ContinuousServingProblem) -> None:
    """Tests that bound <= optimum <= heuristic, whatever is served how; where no plan is found,
    none fits.
    """
    problem = dataclasses.replace(problem, arrival_seconds=None)
    found = solve(problem, "rebatching")
    if found.status is Status.INFEASIBLE:  # of predicted lengths one may be too long
        assert all(problem.violations(plan) for plan in every_task_alone(problem))
        return
    if EveryStep().refusal(problem) is None:
        least = solve(problem, "every-step").objective
        assert bound(problem) <= least * (1 + 1e-9)
        assert least <= found.objective * (1 + 1e-9)


@pytest.mark.parametrize("tasks", [1, 3])
def test_no_batch_fits_with_drafts(tasks: int) -> None:
    """Tests that tasks are served without drafts where the draft model's memory holds none of
    them.
    """
    data = generate("continuous-serving/paper-1", tasks=tasks, max_output=10, seed=1).to_dict()
    data |= {"min_speculation_length": 0, "draft_memory_bytes": 1e9}
    found = solve(ContinuousServingProblem.from_dict(data))
    assert {phase.speculation_length for phase in found.plan.phases} == {0}


@settings(max_examples=20, deadline=None)
@given(problems_with_plans(tasks=(1, 8), max_output=40))
def test_bound_below_every_plan(case: Case) -> None:
    """Tests that no feasible plan lies below the bound: arrivals, samples, mixed lengths, rates of
    every task.
    """
    problem, plan = case
    if not problem.violations(plan):
        assert bound(problem) <= problem.evaluate(plan).objective * (1 + 1e-9)


@settings(max_examples=8, deadline=None)
@given(problems(tasks=(1, 6), max_output=40))
def test_prices_are_checked(problem: ContinuousServingProblem) -> None:
    """Tests that the prices found hold, and that larger ones than any step takes do not."""
    for prepared in (prepare(problem, mechanism) for mechanism in problem.mechanisms):
        if prepared.misfit() is not None:
            continue
        prices = Prices(prepared, problem.arrival_seconds is not None)
        prices.solve(Budget(problem))
        assert (prices.price >= 0.0).all() and (prices.first >= 0.0).all() and prices.holds()
        alone = prices.alone(np.ones(problem.tasks)).max()
        prices.price = np.full_like(prices.price, 2.0 * alone)
        assert alone == 0.0 or not prices.holds()


@settings(max_examples=25, deadline=None)
@given(problems(tasks=(1, 2), max_output=3, max_length=2), st.data())
def test_arrivals_between_bound_and_optimum(
    problem: ContinuousServingProblem, data: st.DataObject
) -> None:
    """Tests that no plan that the oracle plays, whatever its shares, lies below the bound of tasks
    that arrive, and that it plays the plan found like the judge.
    """
    numbers = st.lists(st.integers(0, 20), min_size=problem.tasks, max_size=problem.tasks)
    seconds = 10.0 ** data.draw(st.integers(-4, 1)) * np.array(data.draw(numbers), np.float64)
    changes = {"arrival_seconds": seconds.tolist(), "objective": "mean_latency"}
    problem = ContinuousServingProblem.from_dict(problem.to_dict() | changes)
    found = solve(problem, "rebatching")
    if found.status is Status.INFEASIBLE:
        return
    form = problem.to_dict()
    played = naive.evaluate(form, found.plan.to_dict())
    assert played["objective"] == pytest.approx(found.objective, rel=1e-9)
    assert played["fits"] and played["band"]
    for divisor in [1.0, *data.draw(st.lists(st.floats(1.0, 1e4), max_size=2))]:
        shares = found.plan.bandwidth_share.copy()
        shares[data.draw(st.integers(0, problem.tasks - 1))] /= divisor
        for mechanism in problem.mechanisms:
            least = naive.least(form, mechanism, shares.tolist())
            assert found.bound <= least * (1 + 1e-9)


def test_long_prompts_bound_the_mean() -> None:
    """Tests that long prompts are bounded by the best order in which they are verified, and
    then by the steps of each alone.
    """
    problem = generate("continuous-serving/arrivals", tasks=4, seed=2)
    problem = dataclasses.replace(
        problem,
        input_tokens=problem.input_tokens * 30,
        arrival_seconds=np.zeros(4),
        mechanism="autoregressive",
        output_tokens=np.full(4, 60),
        embedding_bits_per_token=1e-3,
    )
    model, runtime = problem.to_dict()["verify"], problem.verify_runtime
    first, later = (
        [
            runtime.seconds_per_flop * verify_flops(model, float(tokens), 0.0, 0, n)
            for tokens in problem.input_tokens
        ]
        for n in (1, 2)
    )
    orders = itertools.permutations(first)
    least = min(sum(itertools.accumulate(order)) for order in orders) / 4
    least += 59 * (runtime.overhead_seconds + sum(later) / 4)
    assert least * (1 - 1e-6) <= bound(problem) <= solve(problem).objective


@pytest.mark.parametrize("family", ["paper-1", "arrivals"])
def test_first_plan_is_the_best_trivial_one(family: str) -> None:
    """Tests that one batch or tasks alone, at the lengths up to the first that is slower, are no
    faster than the first plan.
    """
    problem = generate(f"continuous-serving/{family}", tasks=6, max_output=40, seed=1)
    prepared, budget = able(problem, Prepared)[0], Budget(problem)
    offer_first_plan(prepared, budget)
    for batches in ([[*range(6)]], [[k] for k in prepared.order]):
        before = np.inf
        for length in prepared.served_lengths:
            phase = Phase(first_step=1, batches=batches, speculation_length=length)
            plan = prepared.plan([phase], prepared.lengths[0])
            value = naive.evaluate(problem.to_dict(), plan.to_dict())
            assert not value["fits"] or budget.objective <= value["objective"] * (1 + 1e-9)
            if not value["fits"] or value["objective"] > before:
                break
            before = value["objective"]


def test_prompts_wait_for_short_ones() -> None:
    """Tests that long prompts are admitted last, and that the bound counts prompts."""
    found = solve(load_saved("continuous-serving/mooncake/llama-K50-arrivals"), gap=0.55)
    assert found.objective <= 20.8
    assert found.bound >= 8.4


@pytest.mark.parametrize(
    ("name", "objective"),
    [("burstgpt/llama-K24-together", 11.976), ("laboratory/continuous-serving-1", 5.82)],
)
def test_lengths_look_ahead(name: str, objective: float) -> None:
    """Tests that lengths are not the fastest until the next event alone, whose plans take 11.999 s
    and 5.833 s.
    """
    assert solve(load_saved(f"continuous-serving/{name}")).objective <= objective


@pytest.mark.parametrize("least", [0, 1])
def test_prompts_are_counted(least: int) -> None:
    """Tests that the bound of a task alone has its prompt: verified in any case, and taken in if it
    drafts.
    """
    problem = generate("continuous-serving/arrivals", tasks=1, max_input=400, max_output=40, seed=3)
    problem = dataclasses.replace(problem, min_speculation_length=least)
    objective = solve(problem, "rebatching").objective
    assert 0.9 * objective <= bound(problem) <= objective * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(problems(tasks=(1, 30), max_output=40, mechanisms=["pipelined"]), st.data())
def test_no_step_earns_more_than_it_takes(
    problem: ContinuousServingProblem, data: st.DataObject
) -> None:
    """Tests that tokens between the knots, of prompts between the ends of a group, are paid by
    every step (Eq. 20).
    """
    prepared = prepare(problem, "pipelined")
    if prepared.misfit() is not None:
        return
    with pytest.MonkeyPatch.context() as patch:  # few groups, of different prompts
        patch.setattr("specopt.solvers.serving_prices.GROUPS", 20)
        prices = Prices(prepared, problem.arrival_seconds is not None)
    prices.solve(Budget(problem))
    price = prices.between(prices.price.reshape(-1, KNOTS))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    outputs = prices.outputs[0]
    for _ in range(10):
        gained = (
            np.maximum(0.0, random.uniform(-0.5, 1.0) + random.random(prepared.tasks)).clip(
                0.0, 1.0
            )
            * outputs
        )
        place = int(random.integers(len(prepared.served_lengths)))
        length = prepared.served_lengths[place]
        after = np.minimum(outputs, gained + prices.tokens[:, place])
        earned = (price * (prices.stretches(after) - prices.stretches(gained))).sum(axis=1)
        runs = int(random.integers(1, min(14, prepared.tasks) + 1))
        chosen = np.argsort(prepared.inputs + gained)[
            -int(random.integers(1, prepared.tasks + 1)) :
        ]
        batches = [batch for batch in np.array_split(chosen, runs) if len(batch)]
        times = []
        for batch in batches:
            reached = float((prepared.inputs[batch] + gained[batch]).max())
            if not prepared.fits(len(batch), reached, 0.0):
                break
            draft, verify = problem.stage_seconds(len(batch), np.array([reached]), length, False)
            times.append((float(draft[0]), float(verify[0])))
        if len(times) == len(batches):
            assert earned[chosen].sum() <= [*prepared.completed(times)][-1] * (1 + 1e-9)


@settings(max_examples=10, deadline=None)
@given(problems(tasks=(1, 8), max_output=30))
def test_plans_are_feasible(problem: ContinuousServingProblem) -> None:
    """Tests that the scheduler's plan is feasible and above its bound, whatever is asked."""
    found = solve(problem, "rebatching")
    if found.status is Status.INFEASIBLE:  # a task alone does not fit
        return
    assert problem.violations(found.plan) == []
    assert found.bound <= found.objective


@pytest.mark.nightly
@pytest.mark.parametrize("name", EXECUTED)
def test_hundred_tasks(name: str) -> None:
    """Tests that a hundred tasks are served no slower than by the policy that reserves final
    lengths.
    """
    problem = load(f"{__file__.rpartition('/tests/')[0]}/tests/data/latency-K100-{name}.json")
    free = ContinuousServingProblem(**problem.shared_fields() | {"output_lengths": "known"})
    assert solve(free, "rebatching").objective <= 1.005 * EXECUTED[name]
