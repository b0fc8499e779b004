"""A method that takes a warm start has it from the first moment, and never answers with less."""

from __future__ import annotations

import math
from typing import Any

import pytest
from helpers.untyped import generate, solve

from specopt import Problem, methods

FAMILIES = {
    "serving-latency/paper-1": {"tasks": 9, "max_output": 40},
    "serving-latency/known-lengths": {"tasks": 9, "max_output": 40},
    "prompt-chunking/paper-4": {"prompt_tokens": 300},
    "verification-batch/warm": {"requests": 12},
    "placement/one-class": {},
    "fair-goodput/paper-5": {},
    "draft-control/paper-3": {},
    "draft-allocation/paper-5": {},
}
PROBLEMS = {family: generate(family, seed=3, **settings) for family, settings in FAMILIES.items()}
CASES = [
    (family, of)
    for family, one in PROBLEMS.items()
    for of in methods(one)
    if of().supports_warm_start
]


def better(problem: Problem, first: float, second: float) -> bool:
    """Return whether the first objective is as good as the second, but for rounding."""
    sign = 1.0 if problem.sense == "minimize" else -1.0
    return sign * (first - second) <= 1e-9 * max(1.0, abs(second))


@pytest.mark.parametrize(("family", "of"), CASES, ids=lambda one: getattr(one, "name", one))
def test_what_it_starts_from_is_not_lost(family: str, of: Any) -> None:
    """Tests that without any time the best plan known, given as warm start, is the answer."""
    problem = PROBLEMS[family]
    best = solve(problem, time_limit=2.0)
    found = solve(problem, of(), warm_start=best, time_limit=0.0)
    assert math.isfinite(found.objective)
    assert better(problem, found.objective, best.objective)
