"""The nearest points of the lattice of quantised distributions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import quantisation as naive
from papers.lattice_points import nearest_counts, quantised

from specopt.models.errors import InvalidInput


def law(weights: list[int]) -> list[Fraction]:
    """Return the distribution with these weights."""
    return [Fraction(w, sum(weights)) for w in weights]


@given(st.lists(st.integers(1, 8), min_size=1, max_size=5), st.integers(1, 6))
def test_floating_point_is_as_near(weights: list[int], resolution: int) -> None:
    """Tests that the rounding of floating-point distributions is as near as any lattice point, but
    for rounding.
    """
    counts = nearest_counts([float(q) for q in law(weights)], resolution)
    assert counts.sum() == resolution and counts.min() >= 0
    found = naive.distances(law(weights), counts.tolist())
    for mine, best in zip(found, naive.nearest_distances(law(weights), resolution), strict=True):
        assert float(mine - best) <= 1e-12


@given(st.lists(st.integers(0, 64), min_size=2, max_size=6), st.integers(0, 8).map(lambda m: 2**m))
def test_floating_point_is_exact_on_binary_fractions(head: list[int], resolution: int) -> None:
    """Tests that array and rational rounding give the same point, ties included, where arithmetic
    is exact.
    """
    weights = [*head, 512 - sum(head)]
    counts = nearest_counts([w / 512 for w in weights], resolution)
    assert counts.tolist() == naive.nearest_counts([Fraction(w, 512) for w in weights], resolution)


def test_ties_go_to_the_first() -> None:
    """Tests that of equal remainders the first ones get the units."""
    assert nearest_counts(np.full(5, 0.2), 3).tolist() == [1, 1, 1, 0, 0]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40).filter(any), st.floats(-9e-6, 9e-6))
def test_lattice_points_stay(counts: list[int], error: float) -> None:
    """Tests that a lattice point is its own nearest, also when its sum is a little off 1, and is
    not changed.
    """
    q = quantised(counts) * (1.0 + error)
    before = q.copy()
    assert nearest_counts(q, sum(counts)).tolist() == counts
    assert (q == before).all()


@pytest.mark.parametrize("total", [1.0 - 9e-6, 1.0 + 9e-6])
def test_sums_a_little_off_cost_nothing(total: float) -> None:
    """Tests that a sum off 1 by more than a unit of the lattice is shared out, not taken from
    single tokens.
    """
    counts = 10**6 * np.array([7, 1, 0, 92, 900])
    assert nearest_counts(total * quantised(counts), 10**9) == pytest.approx(counts, abs=1)


@given(st.integers(1, 400), st.integers(1, 10**9), st.integers(0, 2**32), st.floats(0.0, 30.0))
def test_counts_sum_to_the_resolution(size: int, resolution: int, seed: int, spread: float) -> None:
    """Tests that counts sum to the resolution, stay within a unit of l q, and that impossible
    tokens get none.
    """
    rng = np.random.default_rng(seed)
    q = np.exp(spread * rng.standard_normal(size)) * (rng.random(size) < 0.8)
    q[rng.integers(size)] = q.max() + 1e-3
    q /= q.sum()
    counts = nearest_counts(q, resolution)
    assert counts.dtype == np.int64 and counts.sum() == resolution
    assert np.abs(counts - resolution * q).max() <= 1.0 + 1e-15 * resolution * size
    assert (counts[q == 0.0] == 0).all()


def test_batches_are_rows() -> None:
    """Tests that a batch gives what its rows give, in double and in single precision, whatever its
    shape.
    """
    rng = np.random.default_rng(5)
    q = rng.dirichlet(np.full(1000, 0.1), size=(2, 3))
    for laws in (q, q.astype(np.float32)):
        counts = nearest_counts(laws, 64)
        assert counts.shape == (2, 3, 1000)
        for index in np.ndindex(2, 3):
            assert (counts[index] == nearest_counts(laws[index], 64)).all()
    assert nearest_counts(np.zeros((0, 4)), 64).shape == (0, 4)
    assert quantised(counts).sum(axis=-1) == pytest.approx(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.6], r"distributions: expected probabilities that sum to 1, got the sum 1\.1"),
        (
            [[0.5, 0.5], [0.5, math.nan]],
            r"distributions\[1\]: expected probabilities that sum to 1, got the sum nan",
        ),
        ([math.inf, 0.5], "sum inf"),
        ([[1.5, -0.5]], r"distributions\[0\]\[1\]: expected a probability >= 0, got -0\.5"),
        ([], "along the last axis"),
        (0.5, "along the last axis"),
        (["a"], "along the last axis"),
        ([[0.5, 0.5], [1.0]], "along the last axis"),
        ([True, False], "along the last axis"),
    ],
)
def test_what_is_no_distribution_is_refused(values: Any, message: str) -> None:
    """Tests that values that are no distributions are refused, and where."""
    with pytest.raises(InvalidInput, match=message):
        nearest_counts(values, 4)


@pytest.mark.parametrize("resolution", [0, -1, 2.0, True, 10**9 + 1])
def test_resolutions_are_checked(resolution: Any) -> None:
    """Tests that a resolution below 1, above 10^9 or of another type is refused."""
    with pytest.raises(InvalidInput, match="resolution: expected"):
        nearest_counts([1.0], resolution)
