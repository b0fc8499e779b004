"""Shares of drafts that are long enough: what totals allow, against a linear program and against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from specopt.models.draft_shares import even_hazards, share_limits
from specopt.models.fields import Floats

hazards = st.lists(st.floats(0.05, 1.0), min_size=1, max_size=6).map(np.array)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Hazards, and the share of drafts of each length 1..J."""
    h = draw(hazards)
    weights = np.array(draw(st.lists(st.integers(0, 9), min_size=len(h), max_size=len(h)).filter(any)))
    return h, weights / weights.sum()


def shares(lengths: Floats) -> Floats:
    """Return n_j / n_(j-1) of a distribution of lengths, 1 where nothing is left."""
    at_least = np.cumsum(lengths[::-1])[::-1]
    return np.concatenate(([1.0], np.divide(at_least[1:], at_least[:-1], out=np.ones(len(lengths) - 1),
                                            where=at_least[:-1] > 1e-12)))  # fmt: skip


@given(worlds())
def test_the_truth_is_within_what_totals_allow(world: tuple[Floats, Floats]) -> None:
    """Tests that without sampling error the true share lies in its interval, and an even solution fits the totals."""
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


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5), st.floats(0.0, 1.0))
def test_limits_are_those_of_the_linear_program(least: list[float], where: float) -> None:
    """Tests that the closed form is what a linear program over n_1, ..., n_J finds: the limits are sharp."""
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
        ends = [linprog(sign * np.eye(count)[j], rows, np.zeros(len(rows)), equal, [0.0, 1.0]) for sign in (1.0, -1.0)]
        assert all(end.status == 0 for end in ends)
        assert [ends[0].fun, -ends[1].fun] == pytest.approx([found[0][j], found[1][j]], abs=1e-6)


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
