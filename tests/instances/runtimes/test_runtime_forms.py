"""The forms of runtimes: known coefficients come back, and the roofline form's fit is the global
optimum.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from specopt.instances.runtimes.forms import FORMS, Form, Linear, Roofline
from specopt.instances.runtimes.forms.form import nonnegative_least_squares
from specopt.instances.runtimes.work import Work

Floats = NDArray[np.float64]


def error_of(form: Form, coefficients: Floats, x: Floats, y: Floats, weights: Floats) -> float:
    """Return the weighted sum of squares."""
    return float(((form.predict(coefficients, x[:, None]) - y) ** 2 * weights**2).sum())


@settings(deadline=None)
@given(
    st.floats(1e-9, 1e3),
    st.floats(0.0, 1e3),
    st.floats(0.0, 5.0),
    st.floats(0.0, 1.0),
    st.booleans(),
)
@example(a=471.5, c=844.0, factor=0.0, share=0.0, relative=True)
def test_noise_free_coefficients_come_back(
    a: float, c: float, factor: float, share: float, relative: bool
) -> None:
    """Tests that noise-free lines and maxima of two lines are found again to 1e-9."""
    x = np.array([1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144], float)
    c = a * (
        c + 0.01
    )  # beside a constant a million times larger a slope is lost in the last digits
    line = a * x + c
    weights = 1.0 / line if relative else np.ones_like(x)
    assert Linear().fit(x[:, None], line, weights)[0] == pytest.approx(
        [a, c], rel=1e-8, abs=1e-9 * c
    )
    # the second piece crosses the first between 10 and 30: three values at least on each side
    steep, at = a * (2.0 + factor), 10.0 + 20.0 * share
    second = c - (steep - a) * at
    shift = max(0.0, -second)
    pieces = np.array([[a, c + shift], [steep, second + shift]])
    times = np.maximum(*(row[0] * x + row[1] for row in pieces))
    weights = 1.0 / times if relative else np.ones_like(x)
    found = Roofline().fit(x[:, None], times, weights)
    assert Roofline().predict(found, x[:, None]) == pytest.approx(times, rel=1e-9)
    assert found == pytest.approx(pieces, rel=1e-8, abs=1e-8 * times[0])
    flat = np.maximum(c + shift + a, second + shift + steep * x)
    found = Roofline(flat=True).fit(x[:, None], flat, np.ones_like(x))
    assert Roofline().predict(found, x[:, None]) == pytest.approx(flat, rel=1e-9)
    assert found[0, 0] == 0.0


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(4, 14), st.booleans(), st.booleans())
def test_the_roofline_is_the_global_optimum(seed: int, rows: int, flat: bool, zero: bool) -> None:
    """Tests that no maximum of two lines is better: against a fine grid of breakpoints with scipy,
    and random ones.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(0 if zero else 1, 12, rows).astype(float)
    x[:4] = [0.0 if zero else 1.0, 3.0, 7.0, 12.0]
    y = rng.uniform(0.1, 1.0, rows) + rng.uniform(0.0, 0.3) * x
    weights = rng.uniform(0.5, 2.0, rows)
    form = Roofline(flat)
    found = form.fit(x[:, None], y, weights)
    least = error_of(form, found, x, y, weights)
    assert (found >= 0.0).all()
    assert found[0, 0] <= found[1, 0]
    assert found[0, 1] >= found[1, 1]
    grid = np.inf
    for at in np.unique(
        np.concatenate([np.linspace(0.0, 12.0, 401), x])
    ):  # max(c + p at, c + p x) + a x
        columns = [np.ones_like(x), np.maximum(x, at)] + ([] if flat else [x])
        grid = min(grid, nnls(np.column_stack(columns) * weights[:, None], y * weights)[1] ** 2)
    assert least <= grid * (1.0 + 1e-9) + 1e-12
    assert grid <= least * 1.02 + 1e-3  # the grid comes close
    for _ in range(200):
        other = found * rng.uniform(0.8, 1.25, found.shape) + rng.uniform(0.0, 0.1) * rng.integers(
            0, 2, found.shape
        )
        if flat:
            other[0, 0] = 0.0
        assert least <= error_of(form, other, x, y, weights) * (1.0 + 1e-9) + 1e-12


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4), st.booleans())
def test_least_squares_whatever_the_scale(
    seed: int, rows: int, columns: int, dependent: bool
) -> None:
    """Tests that coefficients fulfil the optimum's conditions, at any scale of columns and target,
    of any rank.
    """
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(rows, columns))
    y = rng.normal(size=rows)
    if dependent:
        design[:, -1] = design[:, 0]
    scales = 10.0 ** rng.integers(-20, 20, columns)
    level = 10.0 ** float(rng.integers(-20, 20))
    found, error = nonnegative_least_squares(design * scales, y * level)
    unit = found * scales / level
    assert (found >= 0.0).all()
    rest = y - design @ unit
    assert error == pytest.approx(float(rest @ rest) * level**2, rel=1e-9, abs=1e-12 * level**2)
    slopes = design.T @ rest
    assert (slopes <= 1e-9).all()
    assert np.abs(slopes[found > 0.0]) == pytest.approx(0.0, abs=1e-9)
    found, error = nonnegative_least_squares(np.zeros((3, 2)), np.ones(3))
    assert found.tolist() == [0.0, 0.0]
    assert error == pytest.approx(3.0)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_says_what_it_is(form: Form) -> None:
    """Tests that designs times coefficients are predictions, every coefficient has a name, and JSON
    has all.
    """
    rng = np.random.default_rng(0)
    work = Work(
        total=np.arange(1.0, 21.0)[:, None],
        features=rng.uniform(1.0, 9.0, (20, 3)),
        slope="seconds_per_token",
    )
    inputs = form.inputs(work)
    assert inputs is not None
    assert form.lacks(inputs) is None
    assert form.lacks(inputs[:1]) is not None
    found = form.fit(inputs, rng.uniform(1.0, 2.0, 20), np.ones(20))
    assert form.design(found, inputs) @ found.ravel() == pytest.approx(form.predict(found, inputs))
    assert len(form.coefficient_names("seconds_per_token")) == found.size
    assert form.formula("tokens").startswith(f"{form.name}, T = ")
    for value in found.ravel().tolist():
        assert repr(value) in repr(form.to_json(found, "seconds_per_token"))


def test_many_different_values() -> None:
    """Tests that tables with more values than breakpoints are tried on evenly spaced ones, and
    still fit well.
    """
    x = np.linspace(1.0, 100.0, 3000)
    y = np.maximum(1.0, 0.05 * x)
    found = Roofline().fit(x[:, None], y, np.ones_like(x))
    assert Roofline().predict(found, x[:, None]) == pytest.approx(y, rel=1e-3)
