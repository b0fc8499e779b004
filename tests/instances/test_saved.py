"""The problems that come with the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt import InvalidInput, ServingLatencyProblem, generate, solve
from specopt.instances import load_saved, saved

FAMILY = "serving-latency/paper-1"
RECIPES: dict[str, dict[str, Any]] = {
    "serving-latency-K7-68M-7B": {"pair": "68M-7B", "tasks": 7, "max_output": 256, "seed": 1},
    "serving-latency-K7-1.1B-7B": {"pair": "1.1B-7B", "tasks": 7, "max_output": 256, "seed": 1},
    "serving-latency-K20-1.1B-13B": {"pair": "1.1B-13B", "tasks": 20, "max_output": 512, "seed": 1},
    "serving-latency-K100-68M-7B": {"pair": "68M-7B", "tasks": 100, "seed": 1},
    "serving-latency-K100-1.1B-7B": {"pair": "1.1B-7B", "tasks": 100, "seed": 1},
    "serving-latency-K100-1.1B-13B": {"pair": "1.1B-13B", "tasks": 100, "seed": 1},
}


def test_every_saved_problem_has_its_recipe() -> None:
    """Tests that the list is complete."""
    assert saved() == sorted(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_saved_problems_are_regenerated(name: str) -> None:
    """Tests that the generator still gives the saved numbers; sizes exactly, signal strengths to rounding."""
    problem, again = load_saved(name), generate(FAMILY, **RECIPES[name])
    assert isinstance(problem, ServingLatencyProblem)
    assert isinstance(again, ServingLatencyProblem)
    assert problem.name == again.name
    np.testing.assert_allclose(problem.snr, again.snr, rtol=1e-12)
    old, new = problem.to_dict(), again.to_dict()
    del old["snr"], new["snr"]
    assert old == new


@pytest.mark.parametrize("name", RECIPES)
def test_saved_problems_are_solved(name: str) -> None:
    """Tests that the paper's method has a feasible plan for each."""
    assert solve(load_saved(name), "algorithm-1").plan is not None


def test_unknown_names() -> None:
    """Tests that a wrong name lists the right ones."""
    with pytest.raises(InvalidInput, match=r"name: expected one of serving-latency-K100-1.1B-13B, .*, got 'K7'"):
        load_saved("K7")
