"""Shares of drafts that are long enough: what totals allow, against a linear program and against
the truth.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from specopt.models.draft_shares import even_hazards, share_limits, yield_limits
from specopt.models.fields import Floats

hazards = st.lists(st.floats(0.05, 1.0), min_size=1, max_size=6).map(np.array)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Hazards, and the share of drafts of each length 1..J."""
    h = draw(hazards)
    weights = np.array(
        draw(st.lists(st.integers(0, 9), min_size=len(h), max_size=len(h)).filter(any))
    )
    return h, weights / weights.sum()


def shares(lengths: Floats) -> Floats:
    """Return n_j / n_(j-1) of a distribution of lengths, 1 where nothing is left."""
    at_least = np.cumsum(lengths[::-1])[::-1]
    return np.concatenate(
        (
            [1.0],
            np.divide(
                at_least[1:],
                at_least[:-1],
                out=np.ones(len(lengths) - 1),
                where=at_least[:-1] > 1e-12,
            ),
        )
    )


@given(worlds())
def test_the_truth_is_within_what_totals_allow(world: tuple[Floats, Floats]) -> None:
    """Tests that without sampling error the true share lies in its interval, and an even solution
    fits the totals.
    """
    h, lengths = world
    q = shares(lengths)
    mean = float(lengths @ np.arange(1, len(h) + 1))
    found = share_limits(mean, h * q)
    assert found is not None
    lows, highs = found
    drafted = np.cumprod(q) > 1e-12  # a position that is never reached has no share
    assert (lows[drafted] <= q[drafted] + 1e-9).all()
    assert (q[drafted] <= highs[drafted] + 1e-9).all()
    even = even_hazards(mean, h * q)
    fitted = np.cumprod(np.concatenate(([1.0], (h * q / even)[1:]))).sum()
    assert fitted == pytest.approx(mean, rel=1e-6)
    assert (even >= h * q - 1e-12).all()


# Thousandths, because the linear program's solver drops coefficients as small as its tolerance.
@given(
    st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=2, max_size=5),
    st.floats(0.0, 1.0),
)
def test_limits_are_those_of_the_linear_program(least: list[float], where: float) -> None:
    """Tests that the closed form is what a linear program over n_1, ..., n_J finds: the limits are
    sharp.
    """
    a, count = np.array(least), len(least)
    smallest = float(np.cumprod(np.concatenate(([1.0], a[1:]))).sum())
    mean = smallest + where * (count - smallest)
    found = share_limits(mean, a)
    assert found is not None
    step = np.eye(count, k=-1)[1:]  # picks n_(j-1)
    rows = np.concatenate((np.eye(count)[1:] - step, a[1:, None] * step - np.eye(count)[1:]))
    for j in range(1, count):
        if np.prod(a[1:j]) < 1e-3:  # n_(j-1) may vanish: the ratio has no sense
            continue
        total = np.ones(count)
        total[0] -= mean
        equal = np.array([total, np.eye(count)[j - 1]])
        ends = [
            linprog(sign * np.eye(count)[j], rows, np.zeros(len(rows)), equal, [0.0, 1.0])
            for sign in (1.0, -1.0)
        ]
        assert all(end.status == 0 for end in ends)
        assert [ends[0].fun, -ends[1].fun] == pytest.approx([found[0][j], found[1][j]], abs=1e-6)


@settings(max_examples=40)
@given(worlds())
def test_the_true_yields_are_within_what_totals_allow(world: tuple[Floats, Floats]) -> None:
    """Tests that without sampling error the mean tokens with 0 to J drafts lie in their
    interval.
    """
    h, lengths = world
    q = shares(lengths)
    mean = float(lengths @ np.arange(1, len(h) + 1))
    reached, survival = np.cumprod(q), np.cumprod(h)
    lower, upper = yield_limits(mean, h * q, reached * survival, reached * survival)
    truth = np.concatenate(([1.0], 1.0 + np.cumsum(survival)))
    drafted = np.concatenate(([True], reached > 1e-3))
    assert (lower <= truth + 1e-9)[drafted].all()
    assert (truth <= upper + 1e-6)[drafted].all()


def test_the_least_yield_by_hand() -> None:
    """Tests that the yield is least where no order binds: sum P / x with a fixed sum of x is so at
    x ~ sqrt(P).
    """
    reached = np.array([1.0, 0.3, 0.3, 0.3, 0.3])
    found = np.cumprod(np.full(5, 0.8)) * reached
    measured = np.array([0.8, 0.24, 0.8, 0.8, 0.8])
    lower, upper = yield_limits(2.2, measured, found, found)
    assert lower[5] == pytest.approx(1.8 + np.sqrt(found[1:]).sum() ** 2 / 1.2, rel=1e-4)
    truth = 1.0 + float(np.cumsum(0.8 ** np.arange(1.0, 6.0))[-1])
    assert 0.99 * truth < lower[5] < truth < upper[5]


@given(hazards)
def test_one_length_is_a_point(h: Floats) -> None:
    """Tests that where every draft had all positions nothing is left open."""
    found = share_limits(float(len(h)), h)
    assert found is not None
    assert found[0].tolist() == found[1].tolist() == [1.0] * len(h)
    assert even_hazards(float(len(h)), h) == pytest.approx(h, abs=1e-12)


def test_more_accepted_than_possible_is_told() -> None:
    """Tests that totals with too few drafted tokens for what was accepted have no shares."""
    assert share_limits(1.5, np.array([0.9, 0.9, 0.9])) is None
