"""Schedules: what they refuse, what they draft, and what they are worth."""

from __future__ import annotations

import numpy as np
import pytest

from specopt.models.errors import InvalidInput
from specopt.solvers.speculation_table.schedule import Range, Schedule

NAN = float("nan")
SPEEDUPS = np.array([[0.95, 1.2, 1.5], [0.95, 1.1, 1.0], [0.95, 0.9, 0.5]])


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        (((2, 4, 1),), r"ranges\[0\]: expected a range that starts at batch 1, got 2"),
        (((1, 4, 1), (6, 8, 1)), r"ranges\[1\]: expected a range that starts at batch 5, got 6"),
        (((1, 4, 1), (4, 8, 1)), r"ranges\[1\]: expected a range that starts at batch 5, got 4"),
        (((1, 0, 1),), r"ranges\[0\]: last batch: expected an integer >= 1, got 0"),
        (((1, 4, -1),), r"ranges\[0\]: drafts: expected an integer >= 0"),
        (((1, 4, 0),), "draft lengths of which at least one is positive"),
        (((1, 4, None), (5, 8, 2)), "a single range of None"),
        ((), "a single range of None"),
    ],
)
def test_impossible_ranges_are_refused(ranges: tuple[Range, ...], message: str) -> None:
    """Tests that gaps, overlaps and half-speculating engines are named."""
    with pytest.raises(InvalidInput, match=message):
        Schedule(ranges=ranges)


def test_speedups_need_a_row_per_batch() -> None:
    """Tests that the worth must belong to increasing batch sizes, with a weight each."""
    for batches in ((1, 2), (1, 2, 2), ()):
        with pytest.raises(
            InvalidInput, match="speedups: expected one row and one weight per batch size"
        ):
            Schedule(ranges=((1, 4, 1),), batches=batches, speedups=SPEEDUPS)
    with pytest.raises(InvalidInput, match="one row and one weight per batch size"):
        Schedule(ranges=((1, 4, 1),), batches=(1, 2, 3), speedups=SPEEDUPS, weights=np.ones(2))


def test_worth_is_the_weighted_geometric_mean() -> None:
    """Tests that the mean speed-ups of a schedule and of single lengths are those by hand, and
    which length is best.
    """
    found = Schedule(ranges=((1, 1, 2), (2, 4, 1), (5, 8, 0)), batches=(1, 4, 8), speedups=SPEEDUPS)
    assert [found.at(batch) for batch in (1, 2, 4, 5, 8, 100)] == [2, 1, 1, 0, 0, 0]
    assert found.mean_speedup() == pytest.approx((1.5 * 1.1 * 0.95) ** (1 / 3))
    assert found.best_single() == pytest.approx((1, (1.2 * 1.1 * 0.9) ** (1 / 3)))
    heavy = Schedule(
        ranges=((1, 8, 1),), batches=(1, 4, 8), speedups=SPEEDUPS, weights=np.array([8.0, 1.0, 0.0])
    )
    assert heavy.best_single() == pytest.approx((2, 1.5 ** (8 / 9)))
    assert Schedule(ranges=((1, 8, 1),)).mean_speedup() is None
    assert Schedule(ranges=((1, 8, None),)).mean_speedup() == 1.0


def test_unknown_lengths_are_left_out() -> None:
    """Tests that a length which is not measured everywhere is no candidate, and has no mean."""
    gaps = np.array([[1.0, NAN, 1.3], [1.0, NAN, 1.2]])
    found = Schedule(ranges=((1, 8, 2),), batches=(1, 8), speedups=gaps)
    assert found.mean_speedup(1) is None
    assert found.mean_speedup(3) is None
    assert found.best_single() == pytest.approx((2, np.sqrt(1.3 * 1.2)))
