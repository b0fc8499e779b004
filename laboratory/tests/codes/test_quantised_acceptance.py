"""The acceptance rate as a linear function of the distance caused by quantising."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from testbed.codes.quantised_acceptance import QuantisedAcceptance


@given(
    st.floats(0.3, 1.0),
    st.floats(-0.1, 0.3),
    st.lists(st.integers(0, 100), min_size=2, max_size=20),
)
def test_a_line_is_found_again(rate: float, loss: float, hundredths: list[int]) -> None:
    """Tests that the line is recovered from rates on it."""
    x = np.array([0.0, *hundredths, 101.0]) / 101.0
    y = rate - loss * x
    if y.max() > 1.0:
        return
    model = QuantisedAcceptance.fit(x, y)
    assert model.unquantised_rate == pytest.approx(rate, abs=1e-12)
    assert model.loss == pytest.approx(loss, abs=1e-12)
    assert model.error < 1e-12
    assert model.predict(x) == pytest.approx(y, abs=1e-12)


@given(st.integers(0, 2**32), st.integers(3, 30))
def test_least_squares(seed: int, count: int) -> None:
    """Tests that the fit solves the normal equations, compared with numpy's least squares."""
    rng = np.random.default_rng(seed)
    x, y = rng.random(count), 0.2 + 0.6 * rng.random(count)
    start, slope = np.linalg.lstsq(np.c_[np.ones(count), x], y, rcond=None)[0]
    model = QuantisedAcceptance.fit(x, y)
    assert model.unquantised_rate == pytest.approx(start, abs=1e-9)
    assert model.loss == pytest.approx(-slope, abs=1e-9)
    assert model.error == pytest.approx(
        np.sqrt(np.mean((np.clip(start + slope * x, 0, 1) - y) ** 2)), abs=1e-12
    )


def test_rates_stay_within_bounds() -> None:
    """Tests that no distance gives a rate outside [0, 1], for any line."""
    model = QuantisedAcceptance(unquantised_rate=0.8, loss=2.0)
    assert model.predict([0.0, 0.25, 0.5, 1.0]) == pytest.approx([0.8, 0.3, 0.0, 0.0])
    assert QuantisedAcceptance(unquantised_rate=1.2, loss=1.0).predict([[0.0], [0.5]]).tolist() == [
        [1.0],
        [0.7],
    ]


@pytest.mark.parametrize(
    ("distances", "rates", "message"),
    [
        ([0.1, 0.1], [0.5, 0.6], "distances: expected at least two different ones"),
        ([], [], "distances: expected at least two different ones"),
        ([0.1, 0.2], [0.5], "rates: expected 2 entries"),
        ([0.1, 1.2], [0.5, 0.5], "distances: expected a list of numbers from 0 to 1"),
        ([0.1, 0.2], [0.5, np.nan], "rates: expected a list of numbers from 0 to 1"),
        ([0.1, 0.2], "ab", "rates: expected a list of numbers from 0 to 1"),
    ],
)
def test_samples_are_checked(distances: Any, rates: Any, message: str) -> None:
    """Tests that samples that do not determine a line are rejected."""
    with pytest.raises(InvalidInput, match=message):
        QuantisedAcceptance.fit(distances, rates)


def test_parameters_are_checked() -> None:
    """Tests that a line with invalid numbers is rejected."""
    with pytest.raises(InvalidInput, match="loss: expected a finite number"):
        QuantisedAcceptance(unquantised_rate=0.5, loss=np.inf)
