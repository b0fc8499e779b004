"""Serving as tasks arrive: what was done is a plan of the same latency, whoever decided; the
scheduler's manners.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import continuous_serving as naive

from specopt import (
    ContinuousServingProblem,
    InvalidInput,
    LinearRuntime,
    ServingLatencyProblem,
    Unsupported,
)
from specopt.kinds.continuous_serving.strategies import problems
from specopt.online import ServingScheduler
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.bound import preemptive_ends, served_bound
from specopt.solvers.continuous_serving.policies import POLICIES, play
from specopt.solvers.continuous_serving.prepare import Prepared
from specopt.solvers.continuous_serving.step_choice import Learned, StepChoice, Task
from specopt.solvers.serving_latency.algorithm_1 import best_plan
from specopt.solvers.serving_latency.prepare import prepare
from specopt.solvers.serving_method import able


def deployment(**changes: Any) -> ContinuousServingProblem:
    """The setting of paper 1 with arrivals."""
    found: ContinuousServingProblem = generate(
        "continuous-serving/arrivals", tasks=12, max_output=60, seed=1
    )
    return dataclasses.replace(found, **changes)


@settings(max_examples=40, deadline=None)
@given(problems(tasks=(1, 7), max_output=30, max_length=4), st.sampled_from(POLICIES))
def test_what_was_done_is_a_plan(problem: ContinuousServingProblem, policy: str) -> None:
    """Tests that a policy's plan is feasible and has its latency by the judge: memory, pauses,
    rates of every task.
    """
    known: Any = "known" if problem.output_lengths == "predicted" else problem.output_lengths
    problem = dataclasses.replace(
        problem, regroup_seconds=0.0, objective="mean_latency", output_lengths=known
    )
    try:
        found: Any = play(problem, policy, 1)
    except (InvalidInput, Unsupported):
        return  # another mechanism, no common rate, or no plan
    if policy == "algorithm-1":
        assert found.plan is None and found.mean > 0.0
        return
    assert problem.violations(found.plan) == []
    assert found.mean == pytest.approx(problem.evaluate(found.plan).objective, rel=1e-9)
    bound = min(served_bound(prepared, Budget(problem)) for prepared in able(problem, Prepared))
    assert bound <= found.mean * (1 + 1e-9)


def test_static_lots_need_room_for_the_longest_output() -> None:
    """Tests that Algorithm 1, which plans with O_max, refuses tasks that fit with their own lengths
    alone.
    """
    problem = deployment(output_lengths="known", max_output_tokens=10**6)
    assert play(problem, "continuous").mean > 0.0
    with pytest.raises(InvalidInput, match="draft-model memory alone"):
        play(problem, "algorithm-1")


def test_static_lots_are_timed_by_the_judge() -> None:
    """Tests that tasks that arrive together take no longer than Algorithm 1's plan, and a late one
    waits for them.
    """
    together = deployment(arrival_seconds=np.zeros(12))
    late = dataclasses.replace(together, arrival_seconds=np.array([0.0] * 11 + [1e-3]))
    first = play(together, "algorithm-1")
    static = ServingLatencyProblem(**together.shared_fields() | {"mechanism": "pipelined"})
    planned = prepare(dataclasses.replace(static, output_lengths="conservative"))
    plan = best_plan(planned, Budget(static), planned.shares)
    assert first.samples.max() == pytest.approx(static.evaluate(plan).objective, rel=1e-9)
    second = play(late, "algorithm-1")
    assert second.samples[11] > np.sort(second.samples[:11])[-1]


def test_drafts_while_it_pays() -> None:
    """Tests that a lone task is drafted for, which beats all, and a crowd is not: not to know it
    costs one prompt.
    """
    for rate, share, most in ((0.2, (0.9, 1.0), 0.9), (20.0, (0.0, 0.3), 1.05)):
        problem = generate(
            "continuous-serving/arrivals", tasks=25, requests_per_second=rate, seed=2
        )
        problem = dataclasses.replace(problem, embedding_bits_per_token=32.0)
        found = play(problem, "online")
        assert share[0] <= found.drafting_share <= share[1]
        assert found.mean <= most * min(play(problem, other).mean for other in POLICIES[1:])


def test_what_the_draft_model_cannot_hold_is_served_alone() -> None:
    """Tests that a task beyond the draft memory is served without drafts, where pauses are allowed,
    and not refused.
    """
    problem: Any = deployment()
    lengths = problem.input_tokens + problem.output_tokens
    room = float(
        problem.draft.parameter_bytes
        + problem.draft.kv_bytes_per_token * (np.sort(lengths)[-2] + 1)
    )
    problem = dataclasses.replace(problem, draft_memory_bytes=room)
    found = play(problem, "online")
    assert problem.violations(found.plan) == [] and 0.0 < found.drafting_share < 1.0
    for policy in ("continuous", "algorithm-1"):
        with pytest.raises(InvalidInput, match="of draft-model memory alone"):
            play(problem, policy)


def test_what_drafting_is_behind_with_is_taken_in_where_memory_is_tight() -> None:
    """Tests that seven tasks of 30 unseen tokens, one at a time in memory, take seven times as long
    as one of them.
    """
    problem: Any = deployment(min_speculation_length=1)
    room = float(problem.draft.parameter_bytes + 1.5 * problem.draft.kv_bytes_per_token * 220)
    problem = dataclasses.replace(problem, draft_memory_bytes=room)
    task = Task(reached=200.0, unseen=30.0, rate=problem.common_rate, first=False)
    choice = StepChoice(problem, "sequential")
    one, seven = (choice.choose([task] * count, Learned()) for count in (1, 7))
    assert len(seven[1]) == 7 and seven[0] == pytest.approx(7.0 * one[0])


@settings(max_examples=25, deadline=None)
@given(
    problems(tasks=(1, 5), max_length=1, mechanisms=["pipelined", "sequential"]),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
)
def test_batches_are_good(problem: ContinuousServingProblem, inputs: list[int]) -> None:
    """Tests that a first step lies between the least over contiguous batches and the better of one
    batch and alone.
    """
    problem = dataclasses.replace(
        problem, draft_memory_bytes=1e30, verify_memory_bytes=None, min_speculation_length=1
    )
    scheduler = ServingScheduler(problem)
    for key, tokens in enumerate(inputs):
        scheduler.submit(key, input_tokens=tokens)
    found = scheduler.next_step().seconds
    data, tasks = problem.to_dict(), sorted(inputs)

    def seconds(order: list[int], cuts: tuple[int, ...]) -> float:
        runs = [order[a:b] for a, b in itertools.pairwise((0, *cuts, len(order)))]
        times = [naive.stages(data, len(run), max(run), 1, True) for run in runs]
        return naive.ends(problem.mechanism, times)[-1]

    every = [
        seconds(order, cuts)
        for order in (tasks, tasks[::-1])
        for count in range(len(tasks))
        for cuts in itertools.combinations(range(1, len(tasks)), count)
    ]
    alone = tuple(range(1, len(tasks)))
    ends = min(seconds(order, cuts) for order in (tasks, tasks[::-1]) for cuts in ((), alone))
    assert min(every) * (1 - 1e-9) <= found <= ends * (1 + 1e-9)


def test_a_saved_scheduler_goes_on_alike() -> None:
    """Tests that state survives JSON between steps, and that what follows is the same."""
    problem = deployment()
    one = ServingScheduler(problem)
    one.warm_up()
    for key, tokens in enumerate((30, 200, 5)):
        one.submit(key, input_tokens=tokens, acceptance_rate=0.7 if key else None)
    one.next_step()
    one.complete({0: 3}, finished=[1])
    two = ServingScheduler.from_state(problem, json.loads(json.dumps(one.state())))
    for scheduler in (one, two):
        scheduler.submit("new", input_tokens=50)
    assert one.next_step() == two.next_step()
    assert two.tasks == (0, 2, "new")
    one.cancel(0)
    one.complete()  # a task that was cancelled meanwhile is not missed
    assert one.tasks == (2, "new")
    two.complete(finished=two.tasks)
    assert two.next_step().batches == () and two.next_step().seconds == 0.0


def test_a_broken_state_is_refused() -> None:
    """Tests that what is no state, a damaged one, or one of a version that knew less is refused by
    name.
    """
    scheduler = ServingScheduler(deployment())
    scheduler.submit("a", input_tokens=10)
    state = scheduler.state()
    older = {name: value for name, value in state.items() if name != "learned"}
    broken: list[Any] = [
        {},
        None,
        older,
        {**state, "tasks": [["a", {"reached": 1.0}]]},
        {**state, "tasks": ["a"]},
    ]
    for each in broken:
        with pytest.raises(InvalidInput, match=r"^state(\.\w+(\[\d\])*)*: "):
            ServingScheduler.from_state(deployment(), each)


def test_refusals() -> None:
    """Tests that what a caller gets wrong is named."""
    scheduler = ServingScheduler(deployment())
    scheduler.submit("a", input_tokens=10)
    for call, words in (
        (
            lambda: scheduler.submit("a", input_tokens=10),
            "key: 'a' is already in use",
        ),
        (lambda: scheduler.submit("b", input_tokens=0), "input_tokens: expected"),
        (
            lambda: scheduler.submit("b", input_tokens=1, acceptance_rate=1.0),
            "acceptance_rate: expected",
        ),
        (lambda: scheduler.cancel("b"), "key: expected the key of an unfinished task, got 'b'"),
        (lambda: scheduler.complete(), "complete: no step is running"),
        (
            lambda: ServingScheduler(deployment(mechanism="sequential"), "pipelined"),
            "mechanism: expected sequential",
        ),
        (lambda: play(deployment(), "magic"), "policy: expected one of online"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
    scheduler.next_step()
    with pytest.raises(InvalidInput, match="next_step: a step is still running; call `complete"):
        scheduler.next_step()
    with pytest.raises(InvalidInput, match="complete: expected tasks of the running step, got 'b'"):
        scheduler.complete({"b": 1})
    with pytest.raises(Unsupported, match="regroup_seconds of 0"):
        play(deployment(regroup_seconds=1.0), "online")


@pytest.mark.parametrize("arrivals", [None, np.zeros(12)], ids=["waiting", "arriving"])
def test_bound_of_one_token(arrivals: np.ndarray[Any, Any] | None) -> None:
    """Tests that the bound of prompts and answers of one token is what they take and no more,
    arriving or waiting.
    """
    problem = deployment(
        input_tokens=np.ones(12, dtype=np.int64),
        output_tokens=np.ones(12, dtype=np.int64),
        arrival_seconds=arrivals,
        objective="makespan",
        verify_runtime=LinearRuntime(seconds_per_flop=1e-9, overhead_seconds=0.0),
    )
    found: Any = play(problem, "online")
    bounds = [served_bound(prepared, Budget(problem)) for prepared in able(problem, Prepared)]
    objective = problem.evaluate(found.plan).objective
    assert max(bounds) <= objective * (1 + 1e-9)
    assert min(bounds) >= 0.99 * objective


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), min_size=1, max_size=4))
def test_shortest_rest_first_ends_most(jobs: list[tuple[int, int]]) -> None:
    """Tests that no schedule of unit steps has its j-th end before that of the shortest rest
    first.
    """
    found = preemptive_ends(
        np.array([float(r) for r, _ in jobs]), np.array([float(w) for _, w in jobs])
    )
    least = [np.inf] * len(jobs)
    states: set[tuple[tuple[int, ...], tuple[int, ...]]] = {(tuple(w for _, w in jobs), ())}
    for clock in range(20):
        following = set()
        for left, ends in states:
            able = [k for k, (release, _) in enumerate(jobs) if release <= clock and left[k]] or [
                -1
            ]
            for k in able:
                rest = tuple(w - (i == k) for i, w in enumerate(left))
                done = (*ends, clock + 1) if k >= 0 and not rest[k] else ends
                following.add((rest, done))
        states = following
    for _, ends in states:
        least = [min(a, b) for a, b in zip(least, ends, strict=True)]
    assert found.tolist() == least
