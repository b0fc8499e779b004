"""Accept or resample, in floating point."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import quantisation as naive
from papers.lattice_points import nearest_counts, quantised
from papers.speculative_sampling import (
    acceptance_rate,
    output_law,
    total_variation,
)

from specopt.models.errors import InvalidInput

pytestmark = pytest.mark.nightly

CUTS = st.lists(st.integers(0, 8), min_size=3, max_size=3).map(sorted)
LAWS = CUTS.map(lambda cuts: [Fraction(int(x), 8) for x in np.diff([0, *cuts, 8])])


def random_laws(shape: tuple[int, ...], seed: int) -> NDArray[np.float64]:
    """Return laws some of whose entries are 0."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=shape) * (rng.random(shape) < 0.7)
    weights[..., 0] += 0.01
    laws: NDArray[np.float64] = weights / weights.sum(axis=-1, keepdims=True)
    return laws


@given(LAWS, LAWS, LAWS)
def test_one_law_against_rationals(
    p: list[Fraction], drawn: list[Fraction], checked: list[Fraction]
) -> None:
    """Tests that output law, acceptance rate and distance are the sums over all drafts and draws in
    rationals.
    """
    a, q, b = (np.array([float(x) for x in law]) for law in (p, drawn, checked))
    expected = naive.output_law(p, drawn, checked)
    assert output_law(a, q, b) == pytest.approx([float(x) for x in expected], abs=1e-15)
    accept = [
        min(Fraction(1), x / y) if y else Fraction(1 if x else 0)
        for x, y in zip(p, checked, strict=True)
    ]
    assert acceptance_rate(a, np.eye(4), b) == pytest.approx([float(x) for x in accept], abs=1e-15)
    rate = sum(x * y for x, y in zip(drawn, accept, strict=True))
    assert acceptance_rate(a, q, b) == pytest.approx(float(rate), abs=1e-15)
    assert total_variation(a, b) == float(
        sum(abs(x - y) for x, y in zip(p, checked, strict=True)) / 2
    )


@given(st.integers(1, 60), st.integers(0, 2**32), st.integers(0, 2**32))
def test_rate_is_one_minus_the_distance(size: int, one: int, two: int) -> None:
    """Tests that drafts verified with the law that they are drawn from are accepted at 1 - TV(p,
    q-hat).
    """
    p, q = random_laws((3, size), one), random_laws((3, size), two)
    rates = acceptance_rate(p, q)
    assert rates == pytest.approx(1.0 - total_variation(p, q), abs=1e-13)
    assert rates == pytest.approx(acceptance_rate(p, q, q), abs=1e-13)


@given(st.integers(1, 60), st.integers(1, 50), st.integers(0, 2**32), st.integers(0, 2**32))
def test_quantise_then_sample_keeps_the_law(size: int, resolution: int, one: int, two: int) -> None:
    """Tests that drafts drawn from q-hat and verified with it come out with law p, within
    rounding.
    """
    p = random_laws((4, size), one)
    q_hat = quantised(nearest_counts(random_laws((4, size), two), resolution))
    assert np.abs(output_law(p, q_hat, q_hat) - p).max() <= 1e-14


@given(st.integers(2, 40), st.integers(1, 20), st.integers(0, 2**32), st.integers(0, 2**32))
def test_sample_then_quantise_gives_a_law(size: int, resolution: int, one: int, two: int) -> None:
    """Tests that what comes out of drafts drawn from q is a law, no further from p than q is from
    q-hat.
    """
    p, q = random_laws((4, size), one), random_laws((4, size), two)
    q_hat = quantised(nearest_counts(q, resolution))
    law = output_law(p, q, q_hat)
    assert law.min() >= 0.0 and law.sum(axis=-1) == pytest.approx(np.ones(4))
    # both draw their drafts and then do the same with them: coupled drafts give coupled outputs.
    # Where q-hat = 0 the acceptance does not matter to quantise-then-sample, which therefore still
    # has law p.
    assert (total_variation(law, p) <= total_variation(q, q_hat) + 1e-13).all()


def test_conventions() -> None:
    """Tests that q-hat = 0 accepts where p > 0 and rejects where p = 0, and that no residual means
    p.
    """
    assert acceptance_rate([0.5, 0.5, 0.0], np.eye(3), [1.0, 0.0, 0.0]).tolist() == [0.5, 1.0, 0.0]
    # the draft 2 is rejected: neither p nor q-hat has it, and they leave no residual
    assert output_law([0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [0.5, 0.5, 0.0]).tolist() == [
        0.5,
        0.5,
        0.0,
    ]


def test_laws_broadcast() -> None:
    """Tests that one law of the server serves a batch of draft laws."""
    p, q = random_laws((7,), 1), random_laws((5, 2, 7), 2)
    law = output_law(p, q, q)
    assert law.shape == (5, 2, 7) and np.abs(law - p).max() < 1e-15
    assert acceptance_rate(p, q).shape == total_variation(q, p).shape == (5, 2)
    assert acceptance_rate(p, q)[3, 1] == acceptance_rate(p, q[3, 1])


@pytest.mark.parametrize("call", [total_variation, acceptance_rate])
def test_laws_are_checked(call: Any) -> None:
    """Tests that what is no distribution, or does not fit, is refused."""
    with pytest.raises(InvalidInput, match="sum to 1"):
        call([0.5, 0.5], [0.5, 0.6])
    for other in ([1.0, 0.0, 0.0], [1.0], [[0.5, 0.5]] * 3):
        with pytest.raises(InvalidInput, match="shapes that fit"):
            call([[0.5, 0.5]] * 2, other)
