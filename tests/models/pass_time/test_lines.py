"""Runtimes of a forward pass, linear and piecewise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import serving_latency as naive

from specopt import LinearRuntime, PiecewiseRuntime
from specopt.kinds.serving_latency.strategies import linear_runtimes, runtimes
from specopt.models.fields import dump
from specopt.solvers.serving_method import envelope


@given(runtimes, st.integers(1, 100), st.floats(0, 1e15))
def test_runtime_is_that_of_naive(
    runtime: LinearRuntime | PiecewiseRuntime, size: int, flops: float
) -> None:
    """Tests that both forms are those of the oracle."""
    assert float(runtime.seconds(size, np.array(flops))) == naive.pass_seconds(
        dump(runtime), size, flops
    )


@given(
    st.lists(linear_runtimes(), min_size=1, max_size=5),
    st.lists(st.floats(0, 1e15), min_size=1, max_size=5),
)
def test_envelope_is_the_maximum(pieces: list[LinearRuntime], works: list[float]) -> None:
    """Tests that the kernels' sorted envelope gives the maximum of the pieces, at its corners
    too.
    """
    runtime = PiecewiseRuntime(pieces=tuple(pieces))
    rows = envelope(runtime)
    assert (np.diff(rows[:, 0]) > 0).all()
    assert (np.diff(rows[:, 2]) > 0).all() or len(rows) == 1
    for work in [*works, *(end for end in rows[:, 2] if np.isfinite(end))]:
        slope, height, _ = rows[np.searchsorted(rows[:, 2], work)]
        assert slope * work + height == pytest.approx(
            float(runtime.seconds(1, np.array(work))), rel=1e-12
        )
