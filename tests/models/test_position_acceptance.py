"""Acceptance by position: conditional and cumulative rates, yields, intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.position_acceptance import PositionAcceptance

rates = st.lists(st.floats(0.0, 1.0, allow_subnormal=False), min_size=1, max_size=8)


@given(rates)
def test_yield_counts_every_accepted_prefix(values: list[float]) -> None:
    """Tests that a step of K drafts yields one token and every product of leading rates."""
    found = PositionAcceptance.exactly(values).expected_tokens(len(values))
    expected, product = [1.0], 1.0
    for rate in values:
        product *= rate
        expected.append(expected[-1] + product)
    assert found == pytest.approx(expected, rel=1e-12)


@given(rates)
def test_cumulative_rates_are_products(values: list[float]) -> None:
    """Tests that alpha_j = r_j / r_(j-1), up to where a position is reached at all."""
    positive = [max(value, 0.05) for value in values]
    found = PositionAcceptance.from_cumulative(np.cumprod(positive)).rates
    assert found == pytest.approx(positive, rel=1e-9)


def test_cumulative_rates_end_where_nothing_is_reached() -> None:
    """Tests that after a cumulative rate of 0 nothing is known."""
    assert PositionAcceptance.from_cumulative([0.5, 0.0, 0.0]).rates.tolist() == [0.5, 0.0]


def test_clopper_pearson_by_hand() -> None:
    """Tests that the exact interval has its closed form where there are no or only successes."""
    none, all_ = (PositionAcceptance.from_counts([10.0], [k]) for k in (0.0, 10.0))
    assert none.lower[0] == 0.0
    assert none.upper[0] == pytest.approx(1.0 - 0.025**0.1)
    assert all_.lower[0] == pytest.approx(0.025**0.1)
    assert all_.upper[0] == 1.0


def test_limits_of_the_yield_hold_it() -> None:
    """Tests that the yields at the limits enclose the yield, and that a constant rate extends to
    any length.
    """
    found = PositionAcceptance.from_counts([100.0, 60.0], [60.0, 30.0])
    low, mean, high = (found.expected_tokens(2, which) for which in ("lower", "rates", "upper"))
    assert (low[1:] < mean[1:]).all()
    assert (mean[1:] < high[1:]).all()
    assert PositionAcceptance.constant(0.5).expected_tokens(20)[-1] == pytest.approx(2.0, abs=1e-5)
    with pytest.raises(InvalidInput, match="known for 2 draft positions, but 3 are needed"):
        found.expected_tokens(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PositionAcceptance.exactly([0.5, -0.5]),
            r"acceptance_rates: expected a list of numbers in \[0, 1\]",
        ),
        (lambda: PositionAcceptance.exactly([0.5, 1.5]), r"in \[0, 1\]"),
        (lambda: PositionAcceptance.exactly([]), "acceptance_rates"),
        (lambda: PositionAcceptance.from_cumulative([0.5, 0.6]), "increase with the position"),
        (lambda: PositionAcceptance.from_counts([10.0], [11.0]), "accepted <= drafted"),
        (lambda: PositionAcceptance.from_counts([0.0], [0.0]), "at least one draft"),
        (
            lambda: PositionAcceptance.from_counts([1.0], [1.0], level=1.0),
            "level: expected a confidence",
        ),
        (
            lambda: PositionAcceptance.constant(0.5, 0.6, 0.7),
            "lower, upper: expected lower <= rates <= upper",
        ),
    ],
)
def test_bad_input_is_named(make: object, message: str) -> None:
    """Tests that each impossible input is refused with what was expected."""
    assert callable(make)
    with pytest.raises(InvalidInput, match=message):
        make()


def totals(
    rng: np.random.Generator,
    hazards: Floats,
    lengths: Sequence[int],
    weights: Sequence[float],
    drafts: int,
) -> tuple[float, float, Floats]:
    """Return drafts, drafted tokens and accepted tokens by position of simulated steps."""
    length = rng.choice(lengths, p=weights, size=drafts)
    position = np.arange(len(hazards))
    taken = (rng.random((drafts, len(hazards))) < hazards) & (position < length[:, None])
    return (
        float(drafts),
        float(length.sum()),
        np.cumprod(taken, axis=1).sum(axis=0).astype(np.float64),
    )


def test_a_table_that_varies_lengths_no_longer_shrinks_them() -> None:
    """Tests that a true rate of 0.8, which shows as 0.240 where 30 % of drafts have five tokens, is
    found.
    """
    drafts, tokens, accepted = totals(
        np.random.default_rng(0), np.full(5, 0.8), (1, 5), (0.7, 0.3), 100_000
    )
    assert accepted[1] / accepted[0] == pytest.approx(0.24, abs=0.005)
    found = PositionAcceptance.from_totals(drafts, tokens, accepted)
    assert (found.lower <= 0.8).all()
    assert (found.upper >= 0.8).all()
    assert found.rates == pytest.approx(
        np.full(5, 0.8), abs=0.015
    )  # position 5 is reached 12,000 times
    assert found.lower[1] > 0.55
    low, mean, high = (found.expected_tokens(5, which)[5] for which in ("lower", "rates", "upper"))
    assert (
        0.97 * mean < low < mean < high < 1.1 * mean
    )  # the yield is known far better than the positions
    assert found.expected_tokens(5, "lower")[5] > 1.0 + np.cumsum(np.cumprod(found.lower))[-1]
    assert "drafts had 2.2 tokens on average, not all 5" in found.notes[0]


def test_intervals_from_totals_hold_the_truth() -> None:
    """Tests that hazards of all kinds, with lengths of all kinds, rarely miss their 95 % intervals,
    nor do yields.
    """
    rng = np.random.default_rng(1)
    missed = seen = 0
    for i in range(100):
        count = int(rng.integers(2, 8))
        hazards = np.full(count, rng.uniform(0.2, 0.95)) if i % 2 else rng.uniform(0.2, 0.95, count)
        lengths = np.unique(np.append(rng.integers(1, count + 1, int(rng.integers(1, 4))), count))
        weights = rng.dirichlet(np.ones(len(lengths)))
        found = PositionAcceptance.from_totals(
            *totals(rng, hazards, lengths.tolist(), weights.tolist(), 500)
        )
        truth = hazards[: len(found.rates)]
        missed += int(((found.lower > truth) | (found.upper < truth)).sum())
        tokens = np.concatenate(([1.0], 1.0 + np.cumsum(np.cumprod(truth))))
        low, high = (found.expected_tokens(len(truth), which) for which in ("lower", "upper"))
        missed += int(((low > tokens + 1e-9) | (high < tokens - 1e-9)).sum())
        seen += 2 * len(truth)
    assert missed <= 0.05 * seen


def test_one_length_is_as_from_counts() -> None:
    """Tests that where the length never changed totals say what counts say, and one token less next
    to it.
    """
    accepted = [700.0, 400.0, 100.0]
    counted = PositionAcceptance.from_counts([1000.0, 700.0, 400.0], accepted)
    found = PositionAcceptance.from_totals(1000.0, 3000.0, accepted)
    assert found.to_dict() == counted.to_dict()
    almost = PositionAcceptance.from_totals(1000.0, 2999.0, accepted)
    assert almost.rates == pytest.approx(counted.rates, rel=0.003)
    assert almost.lower == pytest.approx(counted.lower, rel=0.05)
    assert almost.upper == pytest.approx(counted.upper, rel=0.05)


def test_lengths_that_follow_the_tokens_are_told() -> None:
    """Tests that where drafting stops at doubt, so that more is accepted than chance allows, only
    lower limits stay.
    """
    found = PositionAcceptance.from_totals(1000.0, 1900.0, [500.0, 450.0, 400.0])
    assert "because drafting stops at low confidence" in found.notes[0]
    assert found.upper[1:].tolist() == [1.0, 1.0]
    assert (found.lower[1:] <= [0.9, 400.0 / 450.0]).all()


def test_positions_that_may_never_have_been_drafted_are_left_out() -> None:
    """Tests that an engine set up for more tokens than its table takes says nothing about the
    rest.
    """
    drafts, tokens, accepted = totals(
        np.random.default_rng(2), np.full(3, 0.8), (1, 3), (0.5, 0.5), 10_000
    )
    found = PositionAcceptance.from_totals(drafts, tokens, np.append(accepted, [0.0, 0.0, 0.0]))
    assert found.max_drafts == 3
    assert (found.lower <= 0.8).all()
    assert (found.upper >= 0.8).all()
    single = PositionAcceptance.from_totals(1000.0, 1000.0, [700.0, 0.0])
    assert single.rates.tolist() == [0.7]
