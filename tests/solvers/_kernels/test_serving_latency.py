"""The closed forms of the kernels against the sums that they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import linear_runtimes, problems

from specopt import LinearRuntime
from specopt.solvers._kernels import serving_latency as kernels
from specopt.solvers.serving_latency.prepare import envelope, prepare

values = st.integers(0, 1000).map(lambda value: value / 8)


@settings(max_examples=300)
@given(values, values, values, values, st.integers(1, 60))
def test_sum_of_max(a: float, sa: float, c: float, sc: float, m: int) -> None:
    """Tests that the sum of the larger of two lines is right, wherever they cross."""
    expected = math.fsum(max(a + sa * k, c + sc * k) for k in range(m))
    assert kernels.sum_of_max(a, sa, c, sc, m) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=200)
@given(st.lists(linear_runtimes(), min_size=1, max_size=4), values, values, st.integers(0, 60))
def test_sum_pass(pieces: list[LinearRuntime], first: float, step: float, count: int) -> None:
    """Tests that the sum of a runtime over growing work is right across the corners of the runtime."""
    scale = 1e6  # where slopes of 1e-12..1e-6 and overheads of 1e-5..10 meet
    works = [first * scale + k * step * scale for k in range(count)]
    expected = math.fsum(max(p.seconds_per_flop * work + p.overhead_seconds for p in pieces) for work in works)
    rows = envelope(_Pieces(pieces))  # type: ignore[arg-type]
    assert kernels.sum_pass(rows, first * scale, step * scale, count) == pytest.approx(expected, rel=1e-11)


class _Pieces:
    """Stands for a runtime of any number of pieces."""

    def __init__(self, pieces: list[LinearRuntime]) -> None:
        self.pieces = tuple(pieces)


@settings(max_examples=100)
@given(problems(mechanisms=["pipelined"], max_output=60, max_length=5), st.integers(1, 5))
def test_sums_of_stage_times(problem: object, size: int) -> None:
    """Tests that the sums of T^d and T^v over the decoding steps are those of their terms."""
    prepared = prepare(problem)  # type: ignore[arg-type]
    padded = float(prepared.inputs[-1])
    draft, draft_pieces, verify, verify_pieces = prepared.models
    for l in prepared.lengths:  # noqa: E741
        L, N = prepared.tokens_per_step(l), prepared.steps(l)
        rest = np.arange(2, N + 1)
        drafted = math.fsum(kernels.draft_seconds(draft, draft_pieces, size, padded, l, L, n) for n in rest)
        verified = math.fsum(kernels.verify_seconds(verify, verify_pieces, size, padded, l, L, n) for n in rest)
        assert kernels.draft_sum(draft, draft_pieces, size, padded, l, L, N) == pytest.approx(drafted, rel=1e-11)
        assert kernels.verify_sum(verify, verify_pieces, size, padded, l, L, N) == pytest.approx(verified, rel=1e-11)
