"""Proposition 1, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import quantisation as naive
from papers.lattice_points import nearest_counts

pytestmark = pytest.mark.nightly

WEIGHTS = st.lists(st.integers(0, 12), min_size=5, max_size=5).filter(any)


def law(weights: list[int]) -> list[Fraction]:
    """Return the distribution with these weights."""
    return [Fraction(w, sum(weights)) for w in weights]


def exact_total_variation(first: list[Fraction], second: list[Fraction]) -> Fraction:
    """Return half the sum of the differences of two laws."""
    return sum((abs(a - b) for a, b in zip(first, second, strict=True)), Fraction(0)) / 2


LAWS = WEIGHTS.map(law)


def quantise_then_sample_law(
    p: list[Fraction], q: list[Fraction], resolution: int
) -> list[Fraction]:
    """Return the law of the token if drafts are drawn from the quantised law and verified with
    it.
    """
    q_hat = naive.quantised(q, resolution)
    return naive.output_law(p, q_hat, q_hat)


def sample_then_quantise_law(
    p: list[Fraction], q: list[Fraction], resolution: int
) -> list[Fraction]:
    """Return the law of the token if drafts are drawn from q and verified with the quantised
    law.
    """
    return naive.output_law(p, q, naive.quantised(q, resolution))


@given(LAWS, LAWS, st.integers(1, 12))
def test_quantise_then_sample_is_lossless(
    p: list[Fraction], q: list[Fraction], resolution: int
) -> None:
    """Tests that Proposition 1 holds: the output law equals p as fractions, for every p, q and
    resolution.
    """
    assert quantise_then_sample_law(p, q, resolution) == p


@given(LAWS, LAWS, st.integers(1, 12))
def test_sample_then_quantise_is_lossless_on_the_lattice_only(
    p: list[Fraction], q: list[Fraction], resolution: int
) -> None:
    """Tests that the error is at most TV(q, q-hat): none for a lattice point, and what comes out is
    a law.
    """
    found = sample_then_quantise_law(p, q, resolution)
    assert sum(found) == 1 and min(found) >= 0
    q_hat = [
        Fraction(int(o), resolution) for o in nearest_counts([float(x) for x in q], resolution)
    ]
    if q_hat == q:
        assert found == p
    sampled = naive.output_law(p, q, q_hat)
    assert exact_total_variation(sampled, p) <= exact_total_variation(q, q_hat)


def test_sample_then_quantise_loses_the_law() -> None:
    """Tests that p = (1/2, 1/2), q = (2/3, 1/3) at resolution 1 give the error 1/6 worked out by
    hand.
    """
    p, q = law([1, 1]), law([2, 1])
    # q-hat = (1, 0): the draft 0 is accepted with 1/2 and else replaced by 1; the draft 1 (q-hat 0,
    # p > 0) is accepted
    assert sample_then_quantise_law(p, q, 1) == [Fraction(1, 3), Fraction(2, 3)]
    assert exact_total_variation(sample_then_quantise_law(p, q, 1), p) == Fraction(1, 6)
    assert quantise_then_sample_law(p, q, 1) == p


def test_error_falls_with_the_resolution() -> None:
    """Tests that the error of sample-then-quantise goes to 0 as 1/l while quantise-then-sample has
    none at any l.
    """
    p, q = law([5, 3, 2, 1, 1]), law([7, 5, 3, 2, 0])
    errors = [
        exact_total_variation(sample_then_quantise_law(p, q, resolution), p)
        for resolution in (1, 10, 100, 1000)
    ]
    assert errors[0] > Fraction(1, 10) and 0 < errors[3] < Fraction(1, 500)
    assert all(quantise_then_sample_law(p, q, resolution) == p for resolution in (1, 10, 100, 1000))
