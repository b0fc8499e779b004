"""Plans over intervals: the worst case against dense grids, means, refusals, and the command."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from helpers.command_line import CommandLine
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    InvalidInput,
    ServingLatencyProblem,
    Unsupported,
    generate,
    save,
    solve,
)
from specopt.api.generate import FAMILIES
from specopt.api.robustness import robustness
from specopt.kinds import kind_of
from specopt.models.acceptance import rate_that_yields


def small(seed: int, lengths: str = "conservative") -> ServingLatencyProblem:
    """Return a few short tasks."""
    problem = generate("serving-latency/paper-1", tasks=5, max_output=40, seed=seed)
    assert isinstance(problem, ServingLatencyProblem)
    return dataclasses.replace(problem, output_lengths=lengths)  # type: ignore[arg-type]


@settings(max_examples=15)
@given(
    st.integers(0, 20),
    st.sampled_from(["conservative", "known"]),
    st.floats(0.3, 0.6),
    st.floats(0.0, 0.3),
    st.sampled_from([1.0, 1.3]),
)
def test_nothing_in_the_interval_is_worse(
    seed: int, lengths: str, low: float, width: float, scale: float
) -> None:
    """Tests that no rate of a dense grid is worse than the worst case of serving latency."""
    problem = small(seed, lengths)
    plan = solve(problem, "algorithm-1").plan
    assert plan is not None
    found = robustness(
        problem, plan, acceptance=(low, low + width), output_scale=(1.0, scale), samples=5
    )
    assert found.worst_is_exact
    scaled = dataclasses.replace(
        problem,
        output_tokens=np.ceil(problem.output_tokens * scale - 1e-9).astype(np.int64),
        max_output_tokens=int(np.ceil((problem.max_output_tokens or 1) * scale - 1e-9)),
    )
    grid = [
        dataclasses.replace(scaled, acceptance_rate=rate).evaluate(plan).objective
        for rate in np.linspace(low, low + width, 120).tolist()
    ]
    assert max(grid) <= found.worst.objective * (1.0 + 1e-7)
    assert found.worst.acceptance is not None
    assert low <= found.worst.acceptance <= low + width


def continuous(
    draw: np.random.Generator, **changes: object
) -> tuple[ContinuousServingProblem, ContinuousServingPlan]:
    """Return a few tasks whose batches change, and a plan of random phases."""
    base = generate(
        "continuous-serving/paper-1", tasks=3, max_output=12, seed=int(draw.integers(100))
    )
    problem = ContinuousServingProblem.from_dict(base.to_dict() | changes)

    def batches() -> list[list[int]]:
        tasks = draw.permutation(3).tolist()
        cut = int(draw.integers(1, 4))
        return [part for part in (tasks[:cut], tasks[cut:]) if part]

    phases = [
        {"first_step": n, "batches": batches()}
        for n in sorted({1, *draw.integers(2, 6, 2).tolist()})
    ]
    length = 0 if problem.mechanism == "autoregressive" else 2
    plan = {"speculation_length": length, "phases": phases, "bandwidth_share": [0.3, 0.3, 0.4]}
    return problem, ContinuousServingPlan.from_dict(plan)


@pytest.mark.parametrize("lengths", ["conservative", "known", "predicted"])
@pytest.mark.parametrize("objective", ["makespan", "mean_latency"])
@pytest.mark.parametrize("mechanism", ["pipelined", "sequential", "autoregressive"])
def test_longer_outputs_are_worse_where_all_tasks_are_there(
    lengths: str, objective: str, mechanism: str
) -> None:
    """Tests that no output scale of a dense grid is worse than the largest, for random phases
    without arrivals.
    """
    draw = np.random.default_rng(1)
    for _ in range(3):
        problem, plan = continuous(
            draw,
            objective=objective,
            mechanism=mechanism,
            output_lengths=lengths,
            regroup_seconds=0.1,
            output_samples=draw.integers(1, 12, (2, 3)).tolist()
            if lengths == "predicted"
            else None,
        )
        found = robustness(problem, plan, output_scale=(0.4, 2.5), samples=2)
        assert found.worst_is_exact
        vary = kind_of(problem).uncertainty.vary  # type: ignore[union-attr]
        grid = [
            vary(problem, plan, None, scale)[0].evaluate(plan).objective
            for scale in np.linspace(0.4, 2.5, 30)
        ]
        assert max(grid) <= found.worst.objective * (1.0 + 1e-9)


def test_longer_outputs_may_be_better_where_tasks_arrive() -> None:
    """Tests that with arrivals a case inside the interval is worse than its ends, so that no worst
    case is certain.
    """
    draw = np.random.default_rng(5)
    for _ in range(8):
        arrivals = (np.array([0, 1, 1]) * draw.uniform(0.0, 1.5, 3)).tolist()
        objective = str(draw.choice(["makespan", "mean_latency"]))
        problem, plan = continuous(
            draw,
            arrival_seconds=arrivals,
            output_lengths="known",
            objective=objective,
            regroup_seconds=float(draw.choice([0.0, 0.2])),
        )
    found = robustness(problem, plan, output_scale=(0.4, 1.2), samples=40)
    assert 0.4 < found.worst.output_scale < 1.2
    assert not found.worst_is_exact
    assert robustness(problem, plan, output_scale=(1.2, 1.2), samples=2).worst_is_exact


def test_the_worst_rate_lies_just_before_a_step_is_saved() -> None:
    """Tests that the worst case is found where rates are so low that the judge forgives a step just
    before it.
    """
    problem = dataclasses.replace(
        small(1, "known"), output_tokens=np.full(5, 2000), max_output_tokens=2000
    )
    plan = solve(problem, "no-batching").plan
    assert plan is not None
    saved = rate_that_yields(2000 / 1999, plan.speculation_length)
    found = robustness(problem, plan, acceptance=(0.9999 * saved, 1.0001 * saved), samples=2)
    assert found.worst_is_exact
    for before in (1e-6, 1e-8):
        one = dataclasses.replace(problem, acceptance_rate=saved * (1.0 - before))
        assert one.evaluate(plan).objective <= found.worst.objective * (1.0 + 1e-9)


def test_a_higher_rate_can_be_worse() -> None:
    """Tests that the worst case need not be the lowest rate: while no step is saved, longer KV
    terms count.
    """
    problem = small(1)
    found = robustness(problem, solve(problem), acceptance=(0.5, 0.5001), samples=2)
    assert found.worst.acceptance == pytest.approx(0.5001, rel=1e-6)


def test_what_is_not_certain_is_not_called_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the worst case is certain for one rate and given lengths, else only the worst of
    what was tried.
    """
    problem = small(1)
    plan = solve(problem).plan
    assert plan is not None

    def certain(**changes: object) -> bool:
        variant = ServingLatencyProblem.from_dict(problem.to_dict() | changes)
        return robustness(variant, plan, acceptance=(0.5, 0.7), samples=2).worst_is_exact

    assert certain()
    assert not certain(rounds="slowest")
    assert not certain(output_lengths="predicted", output_samples=[[3, 9, 24, 1, 7]])
    assert not certain(acceptance_rate=[0.9, 0.5, 0.7, 0.8, 0.6])
    monkeypatch.setattr("specopt.kinds.serving_latency.MAX_BREAKPOINTS", 3)
    assert not certain()


@pytest.mark.parametrize("kind", ["draft-control", "draft-allocation", "fair-goodput"])
def test_rates_lower_are_worse(kind: str) -> None:
    """Tests that where every rate helps the worst case is the lower end, and samples and mean lie
    above it.
    """
    problem = generate(next(name for name in FAMILIES if name.startswith(f"{kind}/")), seed=2)
    result = solve(problem)
    found = robustness(problem, result, acceptance=(0.3, 0.8), samples=50, seed=1)
    assert found.worst.objective <= found.quantiles[0.05]
    assert found.worst.acceptance == pytest.approx(0.3)
    assert found.interval[0] <= found.mean <= found.interval[1]
    exact = robustness(problem, result, acceptance=(0.5, 0.5), samples=2)
    assert exact.worst.objective == pytest.approx(exact.mean, rel=1e-12)
    assert not exact.worst.violations


def test_the_same_seed_draws_the_same() -> None:
    """Tests that samples depend on the seed alone."""
    problem = small(3)
    result = solve(problem)
    one, two, other = (
        robustness(problem, result, acceptance=(0.5, 0.9), samples=10, seed=seed).mean
        for seed in (1, 1, 2)
    )
    assert one == two != other


def test_longer_outputs_may_not_fit() -> None:
    """Tests that samples and the worst case report what the plan violates."""
    problem = generate("serving-latency/paper-1", seed=1)
    found = robustness(problem, solve(problem, "max-batching"), output_scale=(1.0, 3.0), samples=20)
    assert any("memory" in violation for violation in found.worst.violations)
    assert 0 < found.violated <= 20


def test_bad_intervals_are_named() -> None:
    """Tests that impossible intervals, and problems without what is uncertain, are refused."""
    problem = small(1)
    result = solve(problem)
    for given_, message in (
        ({"acceptance": (0.9, 0.5)}, r"acceptance: expected LOW:HIGH in \[0, 1\], got 0.9:0.5"),
        ({"acceptance": (0.9, 1.0)}, "acceptance: expected HIGH < 1"),
        ({"output_scale": (0.0, 1.0)}, "output_scale: expected factors"),
        (
            {"output_scale": (1.0, 1e6)},
            "output_scale: expected outputs of at most 10,000,000 tokens",
        ),
        (
            {"output_scale": (1.0, 1e308)},
            "output_scale: expected outputs of at most 10,000,000 tokens",
        ),
        ({"samples": 1}, "samples: expected an integer >= 2"),
    ):
        with pytest.raises(InvalidInput, match=message):
            robustness(problem, result, **given_)
    batch = generate("verification-batch/warm", seed=1)
    with pytest.raises(Unsupported, match="verification-batch has no acceptance rate"):
        robustness(batch, solve(batch), acceptance=(0.5, 0.6))
    allocation = generate("draft-allocation/uniform", seed=1)
    with pytest.raises(Unsupported, match="output_scale: draft-allocation has no output lengths"):
        robustness(allocation, solve(allocation), output_scale=(1.0, 2.0))


def test_command(cli: CommandLine) -> None:
    """Tests that the command prints, gives JSON, exits with 1 where the worst case violates, 2 for
    bad intervals.
    """
    problem = small(1)
    save(problem, "problem.json")
    save(solve(problem), "result.json")
    line = "evaluate problem.json result.json"
    shown = cli(f"{line} --acceptance 0.6:0.9 --samples 20").out
    assert "over acceptance 0.6 to 0.9" in shown
    assert "worst case" in shown
    found = cli(f"{line} --acceptance 0.6:0.9 --json --samples 20").json
    assert found["robustness"]["samples"] == 20
    cli(f"{line} --output-scale 100:1000 --samples 5", 1)
    cli.refuses(f"{line} --acceptance 0.6-0.9", "--acceptance: expected LOW:HIGH, got '0.6-0.9'")
