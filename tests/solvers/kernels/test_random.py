"""The random generator of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from specopt.models.fields import Floats
from specopt.solvers.kernels import random

HELPERS = (
    random.draw,
    random.draw_below,
    random.draw_exponential,
    random.draw_normal,
    random.mixed,
    random.uniform,
)
draw, draw_below, draw_exponential, draw_normal, mixed, uniform = map(njit, HELPERS)


def test_mixed_is_splitmix64() -> None:
    """Tests that the places of the stream from 0 give the generator's published numbers."""
    golden = 0x9E3779B97F4A7C15
    found = [int(mixed(np.uint64(golden * k % 2**64))) for k in (1, 2, 3)]
    assert found == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_draws_move_their_stream_alone() -> None:
    """Tests that a draw is the number of the next place, and leaves other streams where they
    are.
    """
    streams = np.array([5, 5], dtype=np.uint64)
    assert draw(streams, 1) == uniform(streams[1])
    assert streams[0] == 5 and streams[1] != 5


def test_moments() -> None:
    """Tests that the distributions have the mean of their theory, within four standard errors, and
    its spread.
    """
    streams = np.array([1], dtype=np.uint64)

    def sample(drawn: Any, *arguments: float) -> Floats:
        return np.array([drawn(streams, 0, *arguments) for _ in range(40_000)])

    for drawn, arguments, mean, deviation in (
        (draw, (), 0.5, 12**-0.5),
        (draw_below, (7,), 3.0, 2.0),
        (draw_exponential, (2.5,), 2.5, 2.5),
        (draw_normal, (), 0.0, 1.0),
    ):
        found = sample(drawn, *arguments)
        assert found.mean() == pytest.approx(mean, abs=4 * deviation / 200)
        assert found.std() == pytest.approx(deviation, rel=0.05)
    assert set(sample(draw_below, 7)) == set(range(7))
