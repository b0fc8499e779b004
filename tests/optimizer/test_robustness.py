"""Plans over intervals: the worst case against dense grids, means, refusals, and the command."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import InvalidInput, ServingLatencyProblem, Unsupported, generate, save, solve
from specopt.api.generate import FAMILIES
from specopt.api.robustness import robustness
from specopt.commands.cli import run


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
def test_nothing_in_the_interval_is_worse(seed: int, lengths: str, low: float, width: float, scale: float) -> None:
    """Tests that no rate of a dense grid is worse than the worst case of serving latency."""
    problem = small(seed, lengths)
    plan = solve(problem, "algorithm-1").plan
    assert plan is not None
    found = robustness(problem, plan, acceptance=(low, low + width), output_scale=(1.0, scale), samples=5)
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


def test_a_higher_rate_can_be_worse() -> None:
    """Tests that the worst case need not be the lowest rate: while no step is saved, longer KV terms count."""
    problem = small(1)
    plan = solve(problem).plan
    assert plan is not None
    found = robustness(problem, plan, acceptance=(0.5, 0.5001), samples=2)
    assert found.worst.acceptance == pytest.approx(0.5001, rel=1e-6)


def test_what_is_not_certain_is_not_called_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the worst case is certain for one rate and given lengths, else only the worst of what was tried."""
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
    """Tests that where every rate helps the worst case is the lower end, and samples and mean lie above it."""
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
    plan = solve(problem).plan
    assert plan is not None
    one, two, other = (
        robustness(problem, plan, acceptance=(0.5, 0.9), samples=10, seed=seed).mean for seed in (1, 1, 2)
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
    plan = solve(problem).plan
    assert plan is not None
    with pytest.raises(InvalidInput, match=r"acceptance: expected LOW:HIGH in \[0, 1\], got 0.9:0.5"):
        robustness(problem, plan, acceptance=(0.9, 0.5))
    with pytest.raises(InvalidInput, match="acceptance: expected less than 1"):
        robustness(problem, plan, acceptance=(0.9, 1.0))
    with pytest.raises(InvalidInput, match="output_scale: expected factors"):
        robustness(problem, plan, output_scale=(0.0, 1.0))
    for scale in (1e6, 1e308):
        with pytest.raises(InvalidInput, match="output_scale: expected outputs of at most 10,000,000 tokens"):
            robustness(problem, plan, output_scale=(1.0, scale))
    with pytest.raises(InvalidInput, match="samples: expected an integer >= 2"):
        robustness(problem, plan, samples=1)
    batch = generate("verification-batch/warm", seed=1)
    with pytest.raises(Unsupported, match="verification-batch counts on no acceptance rate"):
        robustness(batch, solve(batch), acceptance=(0.5, 0.6))
    allocation = generate("draft-allocation/uniform", seed=1)
    with pytest.raises(Unsupported, match="output_scale: draft-allocation has no output lengths"):
        robustness(allocation, solve(allocation), output_scale=(1.0, 2.0))


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the command prints, gives JSON, exits with 1 where the worst case violates, 2 for bad intervals."""
    problem = small(1)
    file, result = tmp_path / "problem.json", tmp_path / "result.json"
    save(problem, file)
    save(solve(problem), result)
    command = ["evaluate", str(file), str(result)]
    assert run([*command, "--acceptance", "0.6:0.9", "--samples", "20"]) == 0
    shown = capsys.readouterr().out
    assert "over acceptance 0.6 to 0.9" in shown
    assert "worst case" in shown
    assert run([*command, "--acceptance", "0.6:0.9", "--json", "--samples", "20"]) == 0
    assert json.loads(capsys.readouterr().out)["robustness"]["samples"] == 20
    assert run([*command, "--output-scale", "100:1000", "--samples", "5"]) == 1
    capsys.readouterr()
    assert run([*command, "--acceptance", "0.6-0.9"]) == 2
    assert "--acceptance: expected LOW:HIGH, got '0.6-0.9'" in capsys.readouterr().err
