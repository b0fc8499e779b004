"""The published examples: proven optima of the paper's setting, and Algorithm 1 beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.untyped import load, solve

from specopt import ServingLatencyPlan, ServingLatencyProblem, Status
from specopt.models.uplink import spectral_efficiency

DATA = Path(__file__).parents[2] / "data"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected-latency.json").read_text())
SMALL = [name for name in EXPECTED if "-K7-" in name]


def read(name: str) -> ServingLatencyProblem:
    """Load one of the examples."""
    problem: ServingLatencyProblem = load(DATA / f"{name}.json")
    return problem


def optimal_plan(problem: ServingLatencyProblem, expected: dict[str, Any]) -> ServingLatencyPlan:
    """Rebuild the proven optimal plan from batch sizes and pipeline order."""
    order = np.argsort(problem.input_tokens, kind="stable")
    ends = np.cumsum(expected["batch_sizes_by_input_length"])
    batches = np.split(order, ends[:-1])
    need = problem.input_tokens / spectral_efficiency(problem.snr)
    return ServingLatencyPlan(
        speculation_length=expected["speculation_length"],
        batches=tuple(tuple(int(k) for k in batches[m]) for m in expected["pipeline_order"]),
        bandwidth_share=need / need.sum(),
    )


def test_all_examples_are_here() -> None:
    """Tests that every expectation has its problem file and the other way round."""
    assert sorted(EXPECTED) == sorted(path.stem for path in DATA.glob("latency-*.json"))
    assert len(SMALL) == 6


@pytest.mark.parametrize("name", EXPECTED)
def test_judge_gives_the_proven_objective(name: str) -> None:
    """Tests that the proven optimal plan is feasible and has the objective that was proven."""
    problem, expected = read(name), EXPECTED[name]
    plan = optimal_plan(problem, expected)
    assert problem.violations(plan) == []
    found = problem.evaluate(plan)
    assert found.objective == pytest.approx(expected["objective"], rel=1e-9)
    assert found.terms["inference_seconds"] == pytest.approx(
        expected["inference_seconds"], rel=1e-9
    )
    assert found.terms["communication_seconds"] == pytest.approx(
        expected["communication_seconds"], rel=1e-9
    )


@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "exact") for name in EXPECTED), *((name, "brute-force") for name in SMALL)],
)
def test_the_optimum_is_proven(name: str, method: str) -> None:
    """Tests that the published optimum of seven tasks is found by enumeration and by the exact
    method, that of a hundred by the latter.
    """
    result = solve(read(name), method)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(EXPECTED[name]["objective"], rel=1e-9)
    assert result.bound == pytest.approx(EXPECTED[name]["objective"], rel=2e-9)


@pytest.mark.parametrize("name", EXPECTED)
def test_algorithm_1_objective(name: str) -> None:
    """Tests that the corrected Algorithm 1 gives the published objective, seven tasks or a
    hundred.
    """
    result = solve(read(name), "algorithm-1")
    assert result.objective == pytest.approx(EXPECTED[name]["algorithm_1_objective"], rel=1e-9)
    assert result.bound <= EXPECTED[name]["objective"] * (1 + 1e-9)
