"""Confidence limits of fits: they hold the true coefficients as often as they say, for few rows and
for many.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from specopt.instances.runtimes.forms import Additive, Form, Linear, Roofline
from specopt.instances.runtimes.limits import confidence_limits
from specopt.models.fields import Floats

TRUTH: dict[Form, Floats] = {
    Linear(): np.array([[2e-4, 0.03]]),
    Additive(): np.array([3e-5, 3e-8, 5e-6, 0.015]),
    Roofline(): np.array([[1e-5, 0.04], [2e-4, 0.02]]),
}
RUNS = 400


def inputs_of(form: Form, rows: int, rng: np.random.Generator) -> Floats:
    """Return tokens of passes from 1 to 640, or features of batches."""
    if not isinstance(form, Additive):
        return np.geomspace(1.0, 640.0, rows)[:, None]
    new = rng.integers(1, 400, rows)
    cached = rng.integers(0, 2000, rows)
    return np.column_stack([new, (cached + new) * new, cached]).astype(np.float64)


def limits(
    form: Form, inputs: Floats, y: Floats, weights: Floats, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the limits of a fit."""
    found = form.fit(inputs, y, weights)
    return confidence_limits(form.design(found, inputs), found.ravel(), y, weights, level)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("rows", [8, 12, 40])
@pytest.mark.parametrize("form", TRUTH, ids=lambda form: form.name)
def test_limits_cover_the_truth(form: Form, rows: int, relative: bool) -> None:
    """Tests that 95 % limits hold 92 to 98 % of the true coefficients, with equal noise and with
    relative noise.
    """
    rng = np.random.default_rng(rows)
    truth = TRUTH[form]
    inside = []
    for _ in range(RUNS):
        inputs = inputs_of(form, rows, rng)
        exact = form.predict(truth, inputs)
        noise = 0.03 * (exact if relative else exact.mean())
        y = np.maximum(exact + noise * rng.standard_normal(rows), 1e-6)
        lower, upper = limits(form, inputs, y, y.min() / y if relative else np.ones(rows))
        inside.append((lower <= truth.ravel()) & (truth.ravel() <= upper))
    assert 0.92 <= np.mean(inside) <= 0.98
    assert np.mean(inside, axis=0).min() >= 0.90


def test_limits_of_unequal_noise() -> None:
    """Tests that limits hold, too, where noise grows with the time although absolute errors are
    minimised.
    """
    form = Linear()
    truth = np.array([[2e-4, 0.03]])
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(RUNS):
        inputs = np.geomspace(1.0, 640.0, 40)[:, None]
        y = form.predict(truth, inputs) * (1.0 + 0.05 * rng.standard_normal(40))
        lower, upper = limits(form, inputs, y, np.ones(40))
        inside.append((lower <= truth[0]) & (truth[0] <= upper))
    assert np.mean(inside, axis=0).min() >= 0.90


def test_equal_rows_give_students_interval() -> None:
    """Tests that two groups of equally many rows have Welch's interval for the slope, which is by
    hand.
    """
    rng = np.random.default_rng(1)
    x = np.repeat([0.0, 1.0], 6)
    y = 1.0 + x + 0.1 * rng.standard_normal(12)
    low, high = (y[x == value] for value in (0.0, 1.0))
    error = np.sqrt(low.var(ddof=1) / 6 + high.var(ddof=1) / 6)
    lower, upper = limits(Linear(), x[:, None], y, np.ones(12))
    # with equal noise the estimate of the slope's variance has the 10 degrees of freedom of the
    # pooled one
    assert upper[0] - lower[0] == pytest.approx(2.0 * stdtrit(10, 0.975) * error)
    assert upper[0] + lower[0] == pytest.approx(2.0 * (high.mean() - low.mean()))


def test_what_rows_do_not_tell() -> None:
    """Tests that limits are the most that a coefficient may be where no row is left over, or a
    piece has one input.
    """
    lower, upper = limits(Linear(), np.array([[1.0], [10.0]]), np.array([1.0, 2.0]), np.ones(2))
    assert lower.tolist() == [0.0, 0.0]
    assert upper == pytest.approx([0.2, 1.0])
    x = np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    steeper = x > 5.0
    design = np.column_stack([x * ~steeper, ~steeper, x * steeper, steeper])
    fit = np.array([0.0, 1.0, 0.4, 1.0])  # the second piece has one input
    lower, upper = confidence_limits(
        design, fit, np.array([1.0, 1.01, 0.99, 1.0, 5.0]), np.ones(5), 0.95
    )
    assert lower[2:].tolist() == [0.0, 0.0]
    assert upper[2:] == pytest.approx([0.5, 5.0])
    assert 0.9 < lower[1] <= 1.0 <= upper[1] < 1.1


def test_a_row_that_stands_alone() -> None:
    """Tests that a row that alone tells a coefficient gets its noise from the others."""
    x = np.array([0.0] * 9 + [1.0])
    y = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.1, 0.9, 1.0, 2.0])
    lower, upper = limits(Linear(), x[:, None], y, np.ones(10))
    spread = y[:9].std(ddof=1)
    assert upper[0] - lower[0] >= 2.0 * stdtrit(8, 0.975) * spread
    assert upper[0] - lower[0] <= 3.0 * stdtrit(8, 0.975) * spread
