"""Tests for what drafting on is worth, by pieces."""

from __future__ import annotations

import numpy as np
import pytest

from specopt.models.errors import OutOfTime
from specopt.solvers.drafting.pieces import EXACT_PIECES, Pieces, _without_worthless


def parabola(count: int) -> Pieces:
    """Return the tangents of b^2 / 2 as a value of accepted tokens that take no time."""
    touched = np.linspace(0.0, 1.0, count)
    starts = np.concatenate([[0.0], 0.5 * (touched[1:] + touched[:-1])])
    return Pieces(starts, touched, touched, 0.5 * touched**2, 0.5 * touched**2)


def worth(value: Pieces, beliefs: np.ndarray) -> np.ndarray:
    """Return what pieces are worth at a price of 1."""
    i = value.at(beliefs)
    return np.asarray(
        value.accepted[i] * beliefs
        - value.time[i] * beliefs
        - value.time_after[i] * (1.0 - beliefs)
    )


def test_what_is_dropped_is_worth_little_and_the_clock_is_asked() -> None:
    """Tests that pieces become few, lose no more than is said, and that time may run out on the
    way.
    """
    value = parabola(20 * EXACT_PIECES)
    fewer, lost = _without_worthless(value, 1.0, 1e-7, EXACT_PIECES, lambda: None)
    beliefs = np.linspace(0.0, 1.0, 10_001)
    gone = worth(value, beliefs) - worth(fewer, beliefs)
    assert len(fewer.starts) <= EXACT_PIECES and 0.0 < lost < 1e-4
    assert gone.min() > -1e-12 and gone.max() <= lost

    calls = []

    def check() -> None:
        calls.append(True)
        if len(calls) == 3:
            raise OutOfTime

    with pytest.raises(OutOfTime):
        _without_worthless(value, 1.0, 1e-7, EXACT_PIECES, check)


def test_few_pieces_stay() -> None:
    """Tests that nothing is dropped where pieces are few."""
    value = parabola(EXACT_PIECES)
    fewer, lost = _without_worthless(value, 1.0, 1.0, 1, lambda: None)
    assert fewer is value and lost == 0.0
