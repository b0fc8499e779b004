"""The robust moving average by hand, and against the plain one."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.online.average import Average

VALUES = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=40)


@given(VALUES, st.floats(0.0, 0.99))
def test_without_limit_it_is_equation_1(values: list[float], smoothing: float) -> None:
    """Tests that with an infinite limit it is the plain moving average, which begins with the first
    value.
    """
    average = Average()
    expected = values[0]
    for index, value in enumerate(values):
        average = average.after(value, smoothing, math.inf)
        expected = value if index == 0 else smoothing * expected + (1.0 - smoothing) * value
    assert average.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert average.seen == len(values)


@given(VALUES)
def test_it_stays_among_the_values(values: list[float]) -> None:
    """Tests that no limit takes the average out of the range of the values seen."""
    average = Average()
    for value in values:
        average = average.after(value, 0.8, 4.0)
        assert min(values) * (1.0 - 1e-12) <= average.value <= max(values) * (1.0 + 1e-12)


def test_outliers_in_a_row_widen_the_bound() -> None:
    """Tests that the steps towards a value far off grow by 0.8 + 0.2 x 4 from one to the next, the
    first bounded.
    """
    average = Average()
    for index in range(40):
        average = average.after(100.0 + (-1.0) ** index, 0.8, 4.0)
    steps = []
    for _ in range(4):
        before = average.value
        bound = 4.0 * average.deviation
        average = average.after(1e6, 0.8, 4.0)
        steps.append(average.value - before)
        assert steps[-1] == pytest.approx(0.2 * bound)
    assert steps[0] < 1.0
    for before, after in itertools.pairwise(steps):
        assert after / before == pytest.approx(1.6)
