"""Least squares with coefficients >= 0, against scipy's active-set method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from specopt.instances.runtimes.nonnegative_least_squares import nonnegative_least_squares, nonnegative_normal_equations


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4), st.booleans())
def test_equals_scipy(seed: int, rows: int, columns: int, dependent: bool) -> None:
    """Tests that the least sum of squares is scipy's, for any shape and rank."""
    rng = np.random.default_rng(seed)
    design, y = rng.normal(size=(rows, columns)), rng.normal(size=rows)
    if dependent:
        design[:, -1] = design[:, 0]
    found, error = nonnegative_least_squares(design, y)
    expected = nnls(design, y)[1] ** 2
    assert (found >= 0.0).all()
    assert error == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert ((design @ found - y) ** 2).sum() == pytest.approx(error, rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_many_at_once(seed: int, columns: int) -> None:
    """Tests that normal equations, many at once, give the coefficients and the gain of single fits."""
    rng = np.random.default_rng(seed)
    designs, ys = rng.normal(size=(5, 20, columns)) * 10.0 ** rng.integers(-6, 6, columns), rng.normal(size=(5, 20))
    gram = np.einsum("bni,bnj->bij", designs, designs)
    right = np.einsum("bni,bn->bi", designs, ys)
    found, gain = nonnegative_normal_equations(gram, right)
    for design, y, row, lessened in zip(designs, ys, found, gain, strict=True):
        expected, error = nonnegative_least_squares(design, y)
        assert design @ row == pytest.approx(design @ expected, abs=1e-6)
        assert lessened == pytest.approx(float(y @ y) - error, abs=1e-6)


def test_columns_of_zeros() -> None:
    """Tests that columns and targets of zeros give coefficients of 0."""
    found, error = nonnegative_least_squares(np.zeros((3, 2)), np.ones(3))
    assert found.tolist() == [0.0, 0.0]
    assert error == pytest.approx(3.0)
    assert nonnegative_normal_equations(np.zeros((2, 2, 2)), np.zeros((2, 2)))[0].tolist() == [[0.0, 0.0]] * 2
