"""Memory that is met exactly, or exceeded within the judge's tolerance: every method takes what the
judge admits.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from helpers.three_tasks import three_tasks
from helpers.untyped import solve

from specopt import ContinuousServingProblem, ServingLatencyProblem, methods
from specopt.solvers.serving_latency.prepare import prepare

ServingProblem = ServingLatencyProblem | ContinuousServingProblem


def needed(problem: ServingProblem, which: str, tasks: int) -> float:
    """The bytes of a number of tasks in one batch (Eq. 9-10)."""
    model = problem.draft if which == "draft" else problem.verify
    assert model is not None
    tokens = int(problem.input_tokens.max()) + int(problem.output_tokens.max())
    return float(model.parameter_bytes + tasks * model.kv_bytes_per_token * tokens)


def best(problem: ServingProblem, which: str, limit: float) -> dict[str, float | None]:
    """What each method finds with a model's memory; no bound is above what any method finds."""
    limited: Any = {f"{which}_memory_bytes": limit}
    problem = dataclasses.replace(problem, **limited)
    results = {method.name: solve(problem, method.name) for method in methods(problem)}
    least = min(result.objective for result in results.values() if result.objective is not None)
    for result in results.values():
        assert result.bound is None or result.bound <= least * (1 + 1e-12)
    return {name: result.objective for name, result in results.items()}


@pytest.mark.parametrize("which", ["draft", "verify"])
@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize(
    "kind", [ServingLatencyProblem, ContinuousServingProblem], ids=lambda kind: kind.kind
)
def test_tolerance(which: str, tasks: int, kind: type[ServingProblem]) -> None:
    """Tests that all methods plan alike for a memory that is met exactly and one short by less than
    the tolerance.
    """
    fixed, _ = three_tasks("pipelined")
    problem = kind(**fixed.shared_fields() | {"output_lengths": "conservative"})
    if tasks == 1:
        alone = {
            name: getattr(problem, name)[:1] for name in ("input_tokens", "output_tokens", "snr")
        }
        problem = dataclasses.replace(problem, **alone)
    limit = needed(problem, which, tasks)
    exact = best(problem, which, limit)
    assert best(problem, which, limit / (1 + 0.99e-9)) == exact


@pytest.mark.parametrize("which", ["draft", "verify"])
def test_beyond_the_tolerance(which: str) -> None:
    """Tests that exact methods plan and prove for less where the memory is short by more than the
    tolerance.
    """
    problem, _ = three_tasks("pipelined")
    problem = dataclasses.replace(problem, output_lengths="conservative")
    limit = needed(problem, which, 3)
    less = best(problem, which, limit / (1 + 1.01e-9))
    assert less == best(problem, which, limit - 1.0)
    assert less["exact"] != best(problem, which, limit)["exact"]


def test_to_the_byte() -> None:
    """Tests that the room for whole bytes is the judge's to the last one, at the border of the
    tolerance, too.
    """
    problem, plan = three_tasks("pipelined")
    problem = dataclasses.replace(problem, output_lengths="conservative")
    plan = dataclasses.replace(plan, batches=((0, 1, 2),))
    bytes_ = needed(problem, "draft", 3)
    limit = bytes_ * (1 - 1e-9)
    sides = set()
    for step in range(-12, 13):
        case = dataclasses.replace(problem, draft_memory_bytes=limit * (1 + step * 1e-16))
        judged = case.violations(plan) == []
        sides.add(judged)
        assert prepare(case).fits(3, 9.0, 12.0) == judged
    assert sides == {False, True}
