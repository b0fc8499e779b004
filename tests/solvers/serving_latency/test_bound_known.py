"""The bound for known output lengths: what holds between it and plans."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import serving_latency as naive
from small_instances.serving_latency import INSTANCES
from strategies.serving_plans import fixed as problems_with_plans

from specopt import ServingLatencyPlan, ServingLatencyProblem, Status
from specopt.api.library import load_saved
from specopt.kinds.serving_latency.strategies import ALL_MECHANISMS, problems
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency import bound as known_bound
from specopt.solvers.serving_latency import column_bound
from specopt.solvers.serving_latency.column_bound import ColumnBound
from specopt.solvers.serving_latency.length_aware import LengthAware
from specopt.solvers.serving_latency.method import offer_first_plan
from specopt.solvers.serving_latency.prepare import Prepared, prepare
from specopt.solvers.serving_latency.stages import stages
from specopt.solvers.serving_method import able, quick_batches

ONE_MECHANISM = ["pipelined", "sequential", "autoregressive"]


def paper_1(**parameters: Any) -> Any:
    """A problem of the paper's setting with known output lengths."""
    problem = generate("serving-latency/paper-1", **parameters)
    return dataclasses.replace(problem, output_lengths="known")


def bound(problem: ServingLatencyProblem) -> float:
    """The bound over all mechanisms whose memory admits every task."""
    options = able(problem, Prepared)
    return min(known_bound.rebatching_bound(p, Budget(problem)) for p in options)


@settings(max_examples=100)
@given(
    problems_with_plans(
        tasks=(1, 10), max_output=60, mechanisms=ALL_MECHANISMS, output_lengths=["known"]
    )
)
def test_below_every_plan(case: tuple[ServingLatencyProblem, ServingLatencyPlan]) -> None:
    """Tests that no feasible plan lies below the bound, whatever its batches, order and speculation
    length.
    """
    problem, plan = case
    if not problem.violations(plan):
        assert bound(problem) <= problem.evaluate(plan).objective * (1 + 1e-9)


@settings(max_examples=60)
@given(
    problems_with_plans(
        tasks=(1, 6), max_output=40, mechanisms=ONE_MECHANISM, output_lengths=["known"]
    )
)
def test_sums_below_every_plan(case: tuple[ServingLatencyProblem, ServingLatencyPlan]) -> None:
    """Tests that the sums over all steps are below what the oracle says of a plan, and the same for
    tasks alone where nothing overlaps and runtimes are lines.
    """
    problem, plan = case
    prepared, data = prepare(problem), problem.to_dict()
    alone = dataclasses.replace(plan, batches=tuple((k,) for k in range(problem.tasks)))
    for chosen, single in ((plan, False), (alone, False), (alone, True)):
        if naive.violations(data, chosen.to_dict()):
            continue
        seconds = naive.evaluate(data, chosen.to_dict())["inference_seconds"]
        found = known_bound.summed_bound(prepared, chosen.speculation_length, single)
        assert found <= seconds * (1 + 1e-12)
        if single and prepared.linear and not prepared.overlap:
            assert found == pytest.approx(seconds, rel=1e-8)


@settings(max_examples=60)
@given(problems(tasks=(1, 6), max_output=40, max_length=3, mechanisms=ONE_MECHANISM))
def test_first_plan_is_the_best_trivial_one(problem: ServingLatencyProblem) -> None:
    """Tests that no batches as large as memory allows, and no tasks alone, are faster than the
    first plan, at any speculation length.
    """
    prepared, budget = prepare(problem), Budget(problem)
    batches = quick_batches(prepared)
    offer_first_plan(prepared, budget)
    if batches is None:
        assert budget.objective is None
        return
    assert budget.objective is not None
    for some in (batches, [[k] for k in range(problem.tasks)]):
        for length in prepared.served_lengths:
            plan = prepared.plan(some, length)
            assert problem.violations(plan) == []
            trivial = naive.evaluate(problem.to_dict(), plan.to_dict())["objective"]
            assert budget.objective <= trivial * (1 + 1e-9)


@settings(max_examples=60)
@given(problems(tasks=(1, 5), mechanisms=ONE_MECHANISM, output_lengths=["known"]))
def test_tight_for_one_step(problem: ServingLatencyProblem) -> None:
    """Tests that the bound is the optimum where all tasks finish in the first step and nothing
    overlaps.
    """
    outputs = np.ones(problem.tasks, dtype=np.int64)
    ample: dict[str, Any] = {
        "draft_memory_bytes": 1e18,
        "verify_memory_bytes": None,
        "max_output_tokens": None,
    }
    same = dataclasses.replace(problem, output_tokens=outputs, **ample)
    optimum = solve(same, "brute-force").objective
    if same.mechanism == "pipelined":
        assert bound(same) <= optimum * (1 + 1e-9)
    else:
        assert bound(same) == pytest.approx(optimum, rel=1e-9)


@settings(max_examples=75)
@given(
    problems_with_plans(
        tasks=(1, 5),
        max_input=200,
        max_output=60,
        max_length=1,
        mechanisms=ONE_MECHANISM,
        output_lengths=["known"],
    ),
    st.sampled_from([200, 2, 1]),
    st.sampled_from([300, 0]),
    st.sampled_from([20_000, 1]),
)
def test_columns_below_the_optimum(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan], classes: int, exact: int, at_once: int
) -> None:
    """Tests that every bound that column generation passes on its way, from any plan, is below the
    optimum.

    Also with lengths taken together, prices interpolated and batches searched in parts, as for many
    tasks, and with more ranges of steps after the first bound.
    """
    problem, plan = case
    if problem.violations(plan):
        plan = dataclasses.replace(plan, batches=tuple((k,) for k in range(problem.tasks)))
    prepared = prepare(problem)
    optimum = solve(problem, "brute-force").objective
    position = np.argsort(prepared.order)
    batches = [position[list(batch)] for batch in plan.batches]
    seconds = problem.evaluate(plan).terms["inference_seconds"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_bound, "_CLASSES", classes)
        patch.setattr(column_bound, "_LARGEST_EXACT", exact)
        patch.setattr(column_bound, "_NODES", 3)
        patch.setattr(column_bound, "_PARTS", 2)
        patch.setattr(column_bound, "_TASKS_PER_CALL", at_once)
        at, before = stages(prepared, plan.speculation_length), None
        for ranges in (3, 6):
            program = ColumnBound(at, batches, seconds, Budget(problem), ranges)
            if before is not None:
                program.borrow(before)
            for _ in range(60):
                program.improve()
                assert program.bound + prepared.communication_seconds <= optimum * (1 + 1e-9)
                if program.done:
                    break
            before = program


def test_parts_and_adopted_batches_yield_the_same_bound() -> None:
    """Tests that a program whose batches are searched in parts ends with the same bound, and that
    one with more ranges of steps needs fewer columns if it adopts the batches of the first.
    """
    problem = paper_1(tasks=40, seed=1)
    prepared = prepare(problem)
    at, batches = stages(prepared, 1), [np.array(batch) for batch in quick_batches(prepared) or []]
    bounds, columns = [], []
    for parts, adopted in ((1, False), (12, False), (1, True)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(column_bound, "_PARTS", parts)
            patch.setattr(column_bound, "_TASKS_PER_CALL", 1)
            before = ColumnBound(at, batches, 50.0, Budget(problem))
            while not before.done:
                before.improve()
            before._used = before._used if adopted else []
            program = ColumnBound(at, batches, 50.0, Budget(problem), 9)
            program.borrow(before)
            while not program.done:
                program.improve()
            columns.append(program._model.getNumCol())
            bounds.append(program.bound)
    assert bounds == pytest.approx([bounds[0]] * 3, rel=2e-5)
    assert columns[2] < 0.8 * columns[0]


@pytest.mark.parametrize("pair", ["68M-7B", "1.1B-7B"])
def test_interpolated_prices_lose_little(pair: str) -> None:
    """Tests that prices interpolated between nodes bound a hundred tasks almost as well as a price
    for each.
    """
    problem = paper_1(pair=pair, seed=2)
    prepared = prepare(problem)
    batches = [np.array(batch) for batch in quick_batches(prepared) or []]
    bounds = []
    for exact in (300, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(column_bound, "_LARGEST_EXACT", exact)
            program = ColumnBound(stages(prepared, 1), batches, 100.0, Budget(problem))
            while not program.done:
                program.improve()
            bounds.append(program.bound)
    assert bounds[0] * 0.98 <= bounds[1] <= bounds[0] * (1 + 1e-4)


@pytest.mark.slow
def test_a_bound_that_stays_the_same_for_some_rounds_rises_later() -> None:
    """Tests that column generation continues where the bound and the program's value stay the same
    for a dozen rounds before they meet.
    """
    problem = load_saved("serving-latency/azure/qwen3-K50-known")
    assert solve(problem, "length-aware").status is Status.OPTIMAL


@pytest.mark.nightly
@pytest.mark.parametrize(("tasks", "gap"), [(1000, 0.06), (100_000, 0.04)])
def test_many_tasks_are_certified(tasks: int, gap: float) -> None:
    """Tests that the plan of many tasks comes with a proof that it is near the optimum."""
    problem = paper_1(tasks=tasks, seed=1)
    assert solve(problem, LengthAware(moves=1, rounds=60), time_limit=60).gap <= gap


@pytest.mark.parametrize("mechanism", ["sequential", "autoregressive"])
def test_columns_close_without_overlap(mechanism: Any) -> None:
    """Tests that a hundred tasks are certified to 1 % where stages do not overlap."""
    problem = dataclasses.replace(paper_1(seed=1), mechanism=mechanism)
    assert solve(problem, "length-aware").gap < 0.01


def test_one_task_reads_no_more_rows_of_measured_passes() -> None:
    """Tests that the bound of one task with measured passes is that of its only batch; with checked
    indices, it also tests that no row of a batch of two is read.
    """
    problem = INSTANCES["measured passes, one known task"]
    result = solve(problem, "static-batching")
    assert result.bound == pytest.approx(result.objective, rel=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("pair", ["1.1B-7B", "68M-7B"])
def test_rivals_report_the_bound(pair: str) -> None:
    """Tests that rivals report the bound, and that column generation raises it."""
    problem = paper_1(pair=pair, seed=1)
    plan = solve(problem, "length-aware")
    rival = solve(problem, "heuristic-batching")
    assert bound(problem) == pytest.approx(rival.bound, rel=1e-9)
    assert rival.bound < plan.bound < plan.objective < rival.objective
