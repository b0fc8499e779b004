"""The simulator of serving latency against a slow replay, exact expectations and the judge."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import serving_latency as naive
from oracles.random_numbers import GOLDEN, key_of, mixed, uniform
from strategies.serving_plans import fixed as problems_with_plans

import specopt
from specopt import InvalidInput, ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.serving_latency.simulate import simulate

Draw = Callable[[int, int], float]  # of a task at its step


# ---------------------------------------------------------------------------- a slow replay


def same_numbers(seed: int, replication: int) -> Draw:
    """The random numbers of the simulator, from the description of its generator."""
    run = mixed(key_of(seed) + (replication + 1) * GOLDEN)
    return lambda task, step: uniform(mixed(run + (task + 1) * GOLDEN) + step * GOLDEN)


def accepted(alpha: float, l: int, u: float) -> int:  # noqa: E741
    """Draft tokens accepted where the first i are with probability alpha^i."""
    return sum(u < alpha**i for i in range(1, l + 1))


def stages(
    problem: naive.Json,
    mechanism: str,
    b: int,
    length: int,
    l: int,  # noqa: E741
    first: bool,
) -> tuple[float, float]:
    """T^d and T^v of a step of a batch whose longest sequence has that many tokens, prompt included
    (Eq. 13, 14).
    """
    # after the first step the cache counts padded + (n - 1) L - 1
    padded: Any = length if first else length - naive.tokens_per_step(problem, l)
    return naive.stages(problem, mechanism, b, padded, l, 1 if first else 2)


def replayed(problem: naive.Json, plan: naive.Json, drop: bool, draw: Draw) -> tuple[float, int]:
    """Inference seconds and steps of one replication: all batches side by side, step after step."""
    mechanism = naive.mechanism_of(problem, plan)
    l = plan["speculation_length"]  # noqa: E741
    made = [0] * len(problem["output_tokens"])
    need = problem["output_tokens"]
    seconds, step = 0.0, 0
    while any(made[k] < need[k] for k in range(len(made))):
        step += 1
        times = []
        for batch in plan["batches"]:
            working = [k for k in batch if made[k] < need[k]]
            if not working:
                continue
            counted = working if drop else batch
            padded = max(problem["input_tokens"][k] for k in batch)
            length = padded + max(made[k] for k in counted)
            times.append(stages(problem, mechanism, len(counted), length, l, step == 1))
        seconds += naive.makespan(mechanism, times)
        for k in range(len(made)):
            if made[k] < need[k]:
                gained = 1 + (accepted(problem["acceptance_rate"], l, draw(k, step)) if l else 0)
                made[k] = min(need[k], made[k] + gained)
    return seconds, step


@settings(max_examples=60)
@given(
    problems_with_plans(tasks=(1, 6), max_output=20, max_length=5),
    st.booleans(),
    st.integers(0, 2**70),
)
def test_replay_with_the_same_numbers(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan], drop: bool, seed: int
) -> None:
    """Tests that every replication is the one of the slow replay that draws the same numbers."""
    problem, plan = with_memory(case[0]), case[1]
    simulation = simulate(problem, plan, replications=4, seed=seed, drop_finished=drop)
    data, decided = problem.to_dict(), plan.to_dict()
    for r in range(4):
        seconds, steps = replayed(data, decided, drop, same_numbers(seed, r))
        assert simulation.steps.samples[r] == steps
        assert simulation.samples[r] - simulation.communication_seconds == pytest.approx(
            seconds, rel=1e-9, abs=1e-9 * simulation.communication_seconds
        )


def with_memory(problem: ServingLatencyProblem) -> ServingLatencyProblem:
    """Return the problem with ample memory: the plans of the strategies may exceed it."""
    return dataclasses.replace(problem, draft_memory_bytes=1e18, verify_memory_bytes=None)


def plan_of(
    problem: ServingLatencyProblem, batches: list[list[int]], length: int
) -> ServingLatencyPlan:
    """A plan with even bandwidth shares."""
    return ServingLatencyPlan(
        speculation_length=length,
        batches=tuple(map(tuple, batches)),
        bandwidth_share=np.full(problem.tasks, 1 / problem.tasks),
    )


# --------------------------------------------------------------------- one task: exact expectations


def exact_expectation(
    problem: naive.Json,
    l: int,  # noqa: E741
    mechanism: str,
) -> tuple[float, dict[int, float]]:
    """Mean inference seconds of a single task, and the distribution of its steps, by dynamic
    programming.
    """
    alpha, need, prompt = (
        problem["acceptance_rate"],
        problem["output_tokens"][0],
        problem["input_tokens"][0],
    )
    gains = [alpha**i * (1 - alpha) for i in range(l)] + [alpha**l]
    state = {0: 1.0}
    seconds, distribution, step = 0.0, {}, 0
    while state:
        step += 1
        following: dict[int, float] = {}
        distribution[step] = 0.0
        for made, chance in state.items():
            seconds += chance * sum(stages(problem, mechanism, 1, prompt + made, l, step == 1))
            for i, gain in enumerate(gains):
                if made + i + 1 >= need:
                    distribution[step] += chance * gain
                else:
                    following[made + i + 1] = following.get(made + i + 1, 0.0) + chance * gain
        state = following
    return seconds, distribution


@pytest.mark.parametrize("mechanism", ["pipelined", "sequential"])
@pytest.mark.parametrize(
    ("alpha", "length", "output"), [(0.8, 1, 30), (0.5, 4, 25), (0.95, 6, 60), (0.3, 2, 1)]
)
def test_one_task_is_exact_on_average(
    mechanism: Any, alpha: float, length: int, output: int
) -> None:
    """Tests that mean latency and distribution of the steps of one task are those of dynamic
    programming.
    """
    base = generate("serving-latency/paper-1", tasks=1, max_output=output, alpha=alpha, seed=4)
    problem = dataclasses.replace(base, output_tokens=np.array([output]), mechanism=mechanism)
    simulation = simulate(problem, plan_of(problem, [[0]], length), replications=40_000, seed=11)
    seconds, distribution = exact_expectation(problem.to_dict(), length, mechanism)
    assert sum(distribution.values()) == pytest.approx(1.0, abs=1e-12)
    inference = simulation.mean - simulation.communication_seconds
    assert abs(inference - seconds) <= 4.5 * simulation.standard_error + 1e-12
    for steps, chance in distribution.items():
        share = float((simulation.steps.samples == steps).mean())
        assert abs(share - chance) <= 4.5 * math.sqrt(chance * (1 - chance) / 40_000) + 1e-9


# ---------------------------------------------------------------------------- the judge


@settings(max_examples=40)
@given(problems_with_plans(tasks=(1, 6), max_output=20, mechanisms=("autoregressive",)))
def test_autoregressive_is_the_judges_number(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan],
) -> None:
    """Tests that without drafts every replication is what the judge says with known lengths."""
    problem, plan = with_memory(case[0]), case[1]
    simulation = simulate(problem, plan, replications=3)
    judged = dataclasses.replace(problem, output_lengths="known").evaluate(plan)
    assert simulation.samples == pytest.approx(np.full(3, judged.objective), rel=1e-12)
    assert simulation.known_model == judged.objective
    assert simulation.known_ratio == pytest.approx(1.0, rel=1e-12)
    assert simulation.model == problem.evaluate(plan).objective
    assert simulation.steps.mean == simulation.known_model_steps
    assert simulation.batch_mean_steps == simulation.batch_known_model_steps


def test_nearly_certain_acceptance_is_the_judges_number(small: ServingLatencyProblem) -> None:
    """Tests that where nearly every draft is accepted and lengths are whole steps, simulation and
    judge agree.
    """
    problem = dataclasses.replace(
        small,
        acceptance_rate=1 - 1e-14,
        output_tokens=np.array([12, 24, 36, 12, 24]),
        output_lengths="known",
    )
    simulation = simulate(problem, plan_of(problem, [[0, 1], [2, 3, 4]], length=3), replications=2)
    assert simulation.ratio == pytest.approx(1.0, rel=1e-9)
    assert simulation.steps.mean == simulation.model_steps == 9


# ---------------------------------------------------------------------------- what comes back


def test_parts_change_nothing(
    small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that replications are the same whether one call plays them or each has its own."""
    plan = plan_of(small, [[0, 1], [2, 3, 4]], length=2)
    whole = simulate(small, plan, replications=50)
    monkeypatch.setattr("specopt.solvers.serving_latency.simulate._TASKS_PER_CALL", 1)
    assert simulate(small, plan, replications=50).samples.tolist() == whole.samples.tolist()


def test_callback_sees_the_end(small: ServingLatencyProblem) -> None:
    """Tests that the callback is told how many replications are done and their mean."""
    seen: list[tuple[int, float]] = []
    plan = plan_of(small, [[0, 1], [2, 3, 4]], length=2)
    simulation = simulate(
        small, plan, replications=20, callback=lambda done, mean: seen.append((done, mean))
    )
    assert seen[-1][0] == 20
    assert seen[-1][1] == pytest.approx(simulation.mean, rel=1e-12)


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replications": 1}, ["replications", ">= 2", "got 1"]),
        ({"drop_finished": 1}, ["drop_finished", "true or false", "1"]),
    ],
)
def test_refusals(small: ServingLatencyProblem, options: dict[str, Any], words: list[str]) -> None:
    """Tests that each wrong argument is refused by name, with what was expected and what came."""
    with pytest.raises(InvalidInput) as caught:
        simulate(small, plan_of(small, [[0, 1], [2, 3, 4]], length=2), **options)
    assert all(word in str(caught.value) for word in words)


def test_infeasible_plans_are_refused(small: ServingLatencyProblem) -> None:
    """Tests that a plan that violates the problem, or another problem's result, is not played."""
    with pytest.raises(InvalidInput, match=r"the plan is not feasible: .*task 4"):
        simulate(small, plan_of(small, [[0, 1], [2, 3]], length=2))
    with pytest.raises(InvalidInput, match="memory"):
        tight = dataclasses.replace(small, draft_memory_bytes=2.0e9)
        simulate(tight, plan_of(tight, [[0, 1, 2, 3, 4]], length=2))
    other = solve(generate("serving-latency/paper-1", tasks=5, seed=9), "no-batching")
    with pytest.raises(InvalidInput, match="another problem"):
        specopt.simulate(small, other)
    with pytest.raises(InvalidInput, match="plan: the result has no plan"):
        specopt.simulate(small, dataclasses.replace(other, problem_sha256=small.sha256, plan=None))
