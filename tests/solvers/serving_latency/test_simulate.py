"""The simulator of serving latency against a slow replay, exact expectations and the judge."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import serving_latency as naive

import specopt
from specopt import InvalidInput, Result, ServingLatencyPlan, ServingLatencyProblem, generate
from specopt.kinds.serving_latency.strategies import problems_with_plans
from specopt.models.errors import Unsupported
from specopt.models.problem import Evaluation, Plan, Problem
from specopt.solvers.serving_latency.simulate import LatencySimulation
from specopt.solvers.serving_latency.simulate import simulate as played

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
Draw = Callable[[int, int], float]  # of a task at its step


def simulate(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, **options: Any
) -> LatencySimulation:
    """Play static batches."""
    found = played(problem, plan, **options)
    assert isinstance(found, LatencySimulation)
    return found


# ---------------------------------------------------------------------------- a slow replay


def mixed(z: int) -> int:
    """The output function of SplitMix64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def same_numbers(seed: int, replication: int) -> Draw:
    """The random numbers of the simulator, from the description of its generator."""
    key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    run = mixed((key + (replication + 1) * GOLDEN) & MASK)

    def draw(task: int, step: int) -> float:
        stream = mixed((run + (task + 1) * GOLDEN) & MASK)
        return (mixed((stream + step * GOLDEN) & MASK) >> 11) * 2.0**-53

    return draw


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
    L = naive.tokens_per_step(problem, l)
    n = 1 if first else 2
    padded: Any = length if first else length - L  # the cache then counts padded + (n - 1) L - 1
    verify_flops = naive.verify_flops(problem["verify"], padded, L, l, n)
    verify = naive.pass_seconds(problem["verify_runtime"], b, verify_flops)
    if mechanism == "autoregressive":
        return 0.0, verify
    draft = 0.0
    for i in range(1, l + 1):
        flops = naive.draft_flops(problem["draft"], padded, L, i, n)
        draft += naive.pass_seconds(problem["draft_runtime"], b, flops)
    return draft, verify


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
    problem, plan = with_memory(*case)
    simulation = simulate(problem, plan, replications=4, seed=seed, drop_finished=drop)
    data, decided = problem.to_dict(), plan.to_dict()
    for r in range(4):
        seconds, steps = replayed(data, decided, drop, same_numbers(seed, r))
        assert simulation.steps.samples[r] == steps
        assert simulation.samples[r] - simulation.communication_seconds == pytest.approx(
            seconds, rel=1e-9, abs=1e-9 * simulation.communication_seconds
        )


def with_memory(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan
) -> tuple[ServingLatencyProblem, ServingLatencyPlan]:
    """Return the problem with ample memory: the plans of the strategies may exceed it."""
    return dataclasses.replace(problem, draft_memory_bytes=1e18, verify_memory_bytes=None), plan


@pytest.mark.parametrize("drop", [False, True])
def test_replay_with_other_numbers(small: ServingLatencyProblem, drop: bool) -> None:
    """Tests that the mean agrees with a slow replay that flips a coin of its own for every draft
    token.
    """
    problem = dataclasses.replace(small, acceptance_rate=0.7)
    plan = plan_of(problem, [[0, 3], [1, 2, 4]], length=3)
    rng = random.Random(5)

    def coins(task: int, step: int) -> float:
        run = 0
        while run < 3 and rng.random() < 0.7:
            run += 1
        return 0.7**run * (1 - 1e-9)  # the number that `accepted` reads as `run`

    runs = 400
    slow = np.array(
        [replayed(problem.to_dict(), plan.to_dict(), drop, coins)[0] for _ in range(runs)]
    )
    simulation = simulate(problem, plan, replications=20_000, drop_finished=drop)
    mean = simulation.mean - simulation.communication_seconds
    error = math.hypot(slow.std(ddof=1) / math.sqrt(runs), simulation.standard_error)
    assert abs(slow.mean() - mean) < 4.5 * error
    assert simulation.samples.std() == pytest.approx(slow.std(ddof=1), rel=0.25)


def plan_of(
    problem: ServingLatencyProblem, batches: list[list[int]], length: int, mechanism: Any = None
) -> ServingLatencyPlan:
    """A plan with even bandwidth shares."""
    return ServingLatencyPlan(
        speculation_length=length,
        batches=tuple(map(tuple, batches)),
        bandwidth_share=np.full(problem.tasks, 1 / problem.tasks),
        mechanism=mechanism,
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
    assert isinstance(base, ServingLatencyProblem)
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
    problem, plan = with_memory(*case)
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


def test_equal_lengths_are_slower_than_the_model() -> None:
    """Tests that a batch of equal lengths takes more steps than the mean field says: the slowest
    task counts.
    """
    problem = generate("serving-latency/paper-1", tasks=20, max_output=64, seed=2)
    assert isinstance(problem, ServingLatencyProblem)
    problem = dataclasses.replace(problem, output_tokens=np.full(20, 64), max_output_tokens=None)
    simulation = simulate(problem, plan_of(problem, [list(range(20))], length=2))
    assert simulation.model == simulation.known_model
    assert simulation.ratio is not None and simulation.ratio > 1.005
    assert simulation.steps.mean > 1.05 * simulation.model_steps


# ---------------------------------------------------------------------------- what comes back


def test_statistics(small: ServingLatencyProblem) -> None:
    """Tests that mean, error, interval and quantiles are those of the samples."""
    plan = plan_of(small, [[0, 1], [2, 3, 4]], length=2)
    simulation = simulate(small, plan, replications=101, seed=3)
    samples = simulation.samples
    assert len(samples) == len(simulation.steps.samples) == simulation.replications == 101
    assert simulation.mean == pytest.approx(float(samples.mean()), rel=1e-12)
    error = float(samples.std(ddof=1)) / math.sqrt(101)
    assert simulation.standard_error == pytest.approx(error, rel=1e-12)
    low, high = simulation.confidence_interval
    assert (high - low) / 2 == pytest.approx(
        1.983971519 * error, rel=1e-6
    )  # t, 100 degrees of freedom
    assert (high + low) / 2 == pytest.approx(simulation.mean)
    values = list(simulation.quantiles.values())
    assert list(simulation.quantiles) == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert values == sorted(values)
    assert values[2] == float(np.median(samples))
    assert simulation.ratio == simulation.mean / small.evaluate(plan).objective
    assert max(simulation.batch_mean_steps) <= simulation.steps.mean


def test_seeds_and_prefixes(small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a seed decides everything, more replications only continue, and other seeds
    differ.
    """
    plan = plan_of(small, [[0, 1], [2, 3, 4]], length=2)
    first, again = (simulate(small, plan, replications=50, seed=1) for _ in range(2))
    assert first.to_dict() | {"seconds": 0} == again.to_dict() | {"seconds": 0}
    longer = simulate(small, plan, replications=80, seed=1)
    assert (longer.samples[:50] == first.samples).all()
    monkeypatch.setattr("specopt.solvers.serving_latency.simulate._DRAWS_PER_CALL", 1)
    assert (simulate(small, plan, replications=50, seed=1).samples == first.samples).all()
    assert (simulate(small, plan, replications=50, seed=2).samples != first.samples).any()


def test_luck_does_not_depend_on_the_plan(small: ServingLatencyProblem) -> None:
    """Tests that with one seed each task takes the same steps in every plan: plans are compared in
    pairs.
    """
    alone = simulate(small, plan_of(small, [[k] for k in range(5)], length=2), replications=30)
    together = simulate(small, plan_of(small, [[4, 2, 0], [1, 3]], length=2), replications=30)
    assert (alone.steps.samples == together.steps.samples).all()


def test_dropping_finished_tasks_helps(small: ServingLatencyProblem) -> None:
    """Tests that batches that shrink are faster in every replication, and take as many steps."""
    plan = plan_of(small, [[0, 1], [2, 3, 4]], length=2)
    stay, leave = (
        simulate(small, plan, replications=50, drop_finished=drop) for drop in (False, True)
    )
    assert (leave.samples < stay.samples).all()
    assert (leave.steps.samples == stay.steps.samples).all()


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
        ({"replications": 2.5}, ["replications", "2.5"]),
        ({"replications": True}, ["replications", "True"]),
        ({"replications": 10**9}, ["replications", "1000000000"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"seed": "x"}, ["seed", "'x'"]),
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
    with pytest.raises(InvalidInput, match=r"feasible plan.*task 4"):
        simulate(small, plan_of(small, [[0, 1], [2, 3]], length=2))
    with pytest.raises(InvalidInput, match="memory"):
        tight = dataclasses.replace(small, draft_memory_bytes=2.0e9)
        simulate(tight, plan_of(tight, [[0, 1, 2, 3, 4]], length=2))
    other = specopt.solve(
        generate("serving-latency/paper-1", tasks=5, max_output=64, seed=9), "no-batching"
    )
    with pytest.raises(InvalidInput, match="another problem"):
        specopt.simulate(small, other)
    assert isinstance(other, Result)
    with pytest.raises(InvalidInput, match="got none"):
        specopt.simulate(small, dataclasses.replace(other, problem_sha256=small.sha256, plan=None))


def test_other_kinds_are_refused(small: ServingLatencyProblem) -> None:
    """Tests that a kind of problem without a simulator says so."""

    @dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
    class Toy(Problem):
        kind = "toy"
        plan_type = Plan
        sense = "minimize"
        objective_label = "nothing"

        def evaluate(self, plan: Any) -> Evaluation:
            return Evaluation(0.0)

        def violations(self, plan: Any) -> list[str]:
            return []

    with pytest.raises(Unsupported, match="toy has no simulator"):
        specopt.simulate(Toy(), Plan())


def test_to_dict_is_json(small: ServingLatencyProblem) -> None:
    """Tests that the JSON form is complete and leaves out the samples."""
    import json

    simulation = simulate(small, plan_of(small, [[0, 1], [2, 3, 4]], length=2), replications=10)
    data = json.loads(json.dumps(simulation.to_dict(), allow_nan=False))
    shown = {entry.name for entry in dataclasses.fields(LatencySimulation) if entry.repr}
    assert set(data) == shown | {
        "kind",
        "quantity",
        "mean",
        "standard_error",
        "confidence_interval",
        "quantiles",
        "ratio",
        "estimates",
    }
    assert list(data["quantiles"]) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    assert data["estimates"]["latency_seconds"] == {
        name: data[name] for name in data["estimates"]["latency_seconds"]
    }
