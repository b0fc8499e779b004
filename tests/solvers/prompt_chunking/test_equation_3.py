"""Equation 3 of paper 4: the root by the definition and by hand; rounding; and no root."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest
from helpers.untyped import solve
from hypothesis import given
from oracles import prompt_chunking as naive

from specopt import PromptChunkingProblem
from specopt.kinds.prompt_chunking.strategies import problems as prompt_chunkings
from specopt.solvers.prompt_chunking.equation_3 import chunk_size, round_up
from specopt.solvers.prompt_chunking.kernels import simulation

BASE: dict[str, Any] = {
    "format": "specopt/1",
    "kind": "prompt-chunking",
    "prompt_tokens": 100,
    "bytes_per_token": 1.0,
    "uplink_bytes_per_second": 100.0,
    "downlink_bytes_per_second": 200.0,
    "cloud_delay": {"tokens": [0.0, 10.0], "seconds": [0.2, 0.25]},
    "background_tokens": 10.0,
    "pipeline_length": 2,
}


def problem(**fields: Any) -> PromptChunkingProblem:
    """A problem with an affine delay, with some fields replaced."""
    return PromptChunkingProblem.from_dict(BASE | fields)


def plan_of(one: PromptChunkingProblem, method: str = "equation-3") -> Any:
    """The chunks of a method."""
    return solve(one, method).plan.chunks.tolist()


def test_by_hand() -> None:
    """Tests that 2 X / 100 = 0.25 + 0.25 + 0.005 X gives X = 100 / 3, and that the plan rounds it
    up.
    """
    assert chunk_size(problem(), simulation) == pytest.approx(100 / 3)
    assert plan_of(problem()) == [34, 34, 32]
    assert plan_of(problem(grid_tokens=8)) == [40, 40, 20]
    assert plan_of(problem(max_chunks=2)) == [50, 50]
    assert plan_of(problem(prompt_tokens=20)) == [20]


@given(prompt_chunkings(tokens=(1, 40), plain=True))
def test_root_by_definition(one: PromptChunkingProblem) -> None:
    """Tests that the root balances Eq. 3, and that the left side is smaller at every knot and every
    step before it.

    Or everywhere larger, which it may be if nothing is waited for; without a root that is so for
    all sizes.
    """
    data = one.to_dict()
    root = chunk_size(one, simulation)
    knots = [Fraction(t) - Fraction(one.background_tokens) for t in data["cloud_delay"]["tokens"]]
    trials = [k for k in knots if k > 0] + [Fraction(n, 4) for n in range(1, 400)]
    sides = [
        naive.balance(data, size)
        for size in [*trials, Fraction(10**9)]
        if root is None or size < root
    ]
    idle = one.cloud_delay.at(one.background_tokens) == 0
    assert all(side < 1e-12 for side in sides) or (idle and all(side > -1e-12 for side in sides))
    if root is not None:
        assert root > 0
        assert abs(naive.balance(data, Fraction(root))) <= 1e-9 * max(1.0, root)


def test_several_roots() -> None:
    """Tests that the smallest of three roots is taken: 0.02 X crosses 0.2 + g at 10, then below
    again, then above.
    """
    steps = {"tokens": [0.0, 20.0, 21.0, 22.0], "seconds": [0.1, 0.1, 9.0, 9.0]}
    one = problem(cloud_delay=steps, background_tokens=0.0)
    assert chunk_size(one, simulation) == pytest.approx(10.0)
    assert plan_of(one) == [10] * 10


def test_root_from_above() -> None:
    """Tests that a cloud that is idle at first has a root where it falls behind the upload: 0.02 X
    = 0.04 (X - 10).
    """
    late = {"tokens": [0.0, 10.0, 20.0], "seconds": [0.0, 0.0, 0.4]}
    one = problem(cloud_delay=late, background_tokens=0.0)
    assert chunk_size(one, simulation) == pytest.approx(20.0)
    assert plan_of(one) == [20] * 5
    below = problem(cloud_delay=late, background_tokens=5.0)
    assert chunk_size(below, simulation) == pytest.approx(10.0)
    none = problem(cloud_delay=late, background_tokens=0.0, pipeline_length=4)
    assert chunk_size(none, simulation) is None


def test_no_root_is_the_best_equal() -> None:
    """Tests that a cloud that grows faster than the upload leaves the best size by enumeration."""
    steep = {"tokens": [0.0, 10.0], "seconds": [0.2, 0.6]}
    one = problem(cloud_delay=steep)
    assert chunk_size(one, simulation) is None
    assert plan_of(one) == plan_of(one, "best-equal")
    assert solve(one, "equation-3").stats["root"] is None


def test_rounding() -> None:
    """Tests that sizes round up, that floating point does not make 12 into 13, and that there is at
    least a token.
    """
    sizes = {0.2: 1, 1.0: 1, 11.5: 12, 12.0: 12, 12.000000000000002: 12, 12.0001: 13}
    assert [round_up(size) for size in sizes] == list(sizes.values())
    fast = dataclasses.replace(problem(), uplink_bytes_per_second=1e-6)
    assert plan_of(fast)[0] == 1
