"""Drafting policies against dynamic programming over whole histories, random rules, and rounds drawn at random."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import InvalidInput
from specopt.models.drafting import BinaryPredictor, DraftingSetting, Scores
from specopt.solvers.drafting.first_flag import first_flag
from specopt.solvers.drafting.fixed_window import fixed_window
from specopt.solvers.drafting.optimal_stopping import optimal_stopping
from specopt.solvers.drafting.policy import DraftingController
from specopt.solvers.drafting.simulate import simulate_rounds

TABLE_4 = BinaryPredictor(false_accept=0.4250, false_reject=1.0 - 0.8011)
"""The operating point of the paper's multi-layer perceptron."""


def best_speed(setting: DraftingSetting, predictor: Scores) -> float:
    """The highest token speed of any rule on score histories, by bisection on the price; nothing is shared."""
    alpha, most = setting.acceptance_rate, setting.most_tokens
    u, v, w = (list(map(float, one)) for one in (predictor.accepted, predictor.first_rejection, predictor.after))

    @cache
    def masses(history: tuple[int, ...]) -> tuple[float, float]:
        """The probability of a history with no rejection, and with one."""
        if not history:
            return 1.0, 0.0
        good, bad = masses(history[:-1])
        s = history[-1]
        return good * alpha * u[s], good * (1.0 - alpha) * v[s] + bad * w[s]

    def surplus(price: float) -> float:
        @cache
        def value(history: tuple[int, ...]) -> float:
            if len(history) == most:
                return 0.0
            going = -price * setting.seconds_per_token * sum(masses(history))
            for s in range(len(u)):
                longer = (*history, s)
                going += masses(longer)[0] + value(longer)
            return max(0.0, going)

        return value(()) + 1.0 - price * setting.overhead_seconds

    low, high = 0.0, (most + 1) / setting.overhead_seconds
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if surplus(middle) > 0.0 else (low, middle)
    return low


@st.composite
def cases(draw: st.DrawFn, most: int = 4) -> tuple[DraftingSetting, Scores]:
    """Draw a setting of few tokens and a predictor of few bins, zeros and ones among the probabilities."""
    bins = draw(st.integers(1, 3))
    rows = []
    for _ in range(3):
        weights = np.array(draw(st.lists(st.integers(0, 9), min_size=bins, max_size=bins)), dtype=float)
        weights[0] += float(weights.sum() == 0.0)
        rows.append(weights / weights.sum())
    setting = DraftingSetting(
        acceptance_rate=draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.05, 0.98))),
        most_tokens=draw(st.integers(1, most)),
        seconds_per_token=draw(st.floats(0.001, 0.1)),
        overhead_seconds=draw(st.floats(0.01, 1.0)),
    )
    return setting, Scores(accepted=rows[0], first_rejection=rows[1], after=rows[2])


@settings(max_examples=80)
@given(cases())
def test_optimal_stopping_is_the_best_rule_on_histories(case: tuple[DraftingSetting, Scores]) -> None:
    """Tests that the recursion on beliefs loses nothing against a recursion on whole score histories."""
    setting, predictor = case
    found = optimal_stopping(setting, predictor)
    assert found.tokens_per_second == pytest.approx(best_speed(setting, predictor), rel=1e-9)
    assert found.gap == 0.0


@settings(max_examples=80)
@given(cases(most=6))
def test_policies_keep_their_order(case: tuple[DraftingSetting, Scores]) -> None:
    """Tests that optimal stopping is never slower than a fixed window or any cut of the score, sent or withheld."""
    setting, predictor = case
    best = optimal_stopping(setting, predictor).tokens_per_second
    for window in range(setting.most_tokens + 1):
        assert best >= fixed_window(setting, window, bins=predictor.bins).tokens_per_second * (1 - 1e-12)
    for cut, sends in itertools.product(range(predictor.bins + 1), (False, True)):
        rule = first_flag(setting, predictor, first_accepted_bin=cut, sends_flagged=sends)
        assert best >= rule.tokens_per_second * (1 - 1e-12)


@pytest.mark.parametrize("alpha", np.linspace(0.55, 0.85, 7))
@pytest.mark.parametrize("overhead", [0.03, 0.06, 0.1, 0.2, 0.4])
def test_table_4(alpha: float, overhead: float) -> None:
    """Tests that, at the paper's operating point, its rule drafts slower than the best window and ours does not."""
    setting = DraftingSetting(acceptance_rate=alpha, most_tokens=8, seconds_per_token=0.02, overhead_seconds=overhead)
    window = fixed_window(setting).tokens_per_second
    stopping = optimal_stopping(setting, TABLE_4.scores).tokens_per_second
    assert 0.65 < first_flag(setting, TABLE_4.scores).tokens_per_second / window < 0.95
    assert 1.0 <= stopping / window < 1.08
    assert stopping == pytest.approx(best_speed(setting, TABLE_4.scores), rel=1e-9)


def scored(bins: int) -> Scores:
    """A score that is normal, in bins, with a mean that depends on the outcome."""
    x = np.linspace(-2.0, 2.0, bins)
    rows = [np.exp(-((x - mean) ** 2)) for mean in (0.6, -0.6, -0.2)]
    accepted, rejected, after = (row / row.sum() for row in rows)
    return Scores(accepted=accepted, first_rejection=rejected, after=after)


@pytest.mark.parametrize(("bins", "most"), [(2, 8), (3, 6), (8, 24)])
def test_rounds_drawn_at_random_agree(bins: int, most: int) -> None:
    """Tests that the closed forms of all three policies are the means of drawn rounds."""
    predictor = scored(bins)
    setting = DraftingSetting(acceptance_rate=0.8, most_tokens=most, seconds_per_token=0.02, overhead_seconds=0.2)
    policies = [
        fixed_window(setting, bins=bins),
        first_flag(setting, predictor, first_accepted_bin=bins // 2),
        first_flag(setting, predictor, first_accepted_bin=bins // 2, sends_flagged=True),
        optimal_stopping(setting, predictor),
    ]
    for seed, one in enumerate(policies):
        drawn = simulate_rounds(setting, predictor, one.policy, rounds=200_000, seed=seed)
        assert abs(drawn.tokens_per_second - one.tokens_per_second) <= 4.5 * drawn.standard_error
        for samples, mean in (
            (drawn.accepted, one.expected.accepted),
            (drawn.wasted, one.expected.wasted),
            (drawn.drafted, one.expected.drafted),
        ):
            assert abs(samples.mean() - mean) <= 4.5 * samples.std() / np.sqrt(len(samples)) + 1e-9


def test_many_bins_stay_within_a_proven_gap() -> None:
    """Tests that where plans are dropped, the gap is tiny, and that more bins of one score never hurt."""
    setting = DraftingSetting(acceptance_rate=0.85, most_tokens=32, seconds_per_token=0.005, overhead_seconds=0.4)
    fine = scored(16)
    coarse = Scores(
        **{name: getattr(fine, name).reshape(8, 2).sum(axis=1) for name in ("accepted", "first_rejection", "after")}
    )
    found, merged = optimal_stopping(setting, fine), optimal_stopping(setting, coarse)
    assert 0.0 <= found.gap < 1e-4
    assert found.tokens_per_second >= merged.tokens_per_second * (1 - 1e-4)
    assert found.tokens_per_second > 1.05 * fixed_window(setting, bins=16).tokens_per_second


def test_the_controller_plays_the_policy() -> None:
    """Tests that the object for devices stops where the policy does, round after round."""
    setting = DraftingSetting(acceptance_rate=0.8, most_tokens=6, seconds_per_token=0.02, overhead_seconds=0.1)
    predictor = TABLE_4.scores
    best = optimal_stopping(setting, predictor)
    controller = DraftingController(best.policy, setting, predictor)
    drafted = accepted = 0.0
    for bits in itertools.product((0, 1), repeat=6):
        goes_on = controller.start()
        read: list[int] = []
        good, bad = 1.0, 0.0
        while goes_on:
            s = bits[len(read)]
            read.append(s)
            goes_on = controller.observe(s)
            bad = good * 0.2 * float(predictor.first_rejection[s]) + bad * float(predictor.after[s])
            good = good * 0.8 * float(predictor.accepted[s])
            # every history is met once for each continuation of its bits
            accepted += good / 2 ** (6 - len(read))
            drafted += (good + bad) / 2 ** (6 - len(read))
        assert controller.drafted == len(read)
    # drafted counts a token when its score is read: each history's mass is its probability
    assert accepted == pytest.approx(best.expected.accepted, rel=1e-9)
    assert drafted == pytest.approx(best.expected.drafted, rel=1e-9)
    with pytest.raises(InvalidInput, match="score_bin"):
        controller.observe(2)


def test_bad_arguments_are_named() -> None:
    """Tests that windows, bins, rounds and seeds out of range are refused by name."""
    setting = DraftingSetting(acceptance_rate=0.8, most_tokens=6, seconds_per_token=0.02, overhead_seconds=0.1)
    policy = fixed_window(setting).policy
    with pytest.raises(InvalidInput, match="window"):
        fixed_window(setting, 7)
    with pytest.raises(InvalidInput, match="first_accepted_bin"):
        first_flag(setting, TABLE_4.scores, first_accepted_bin=3)
    with pytest.raises(InvalidInput, match="rounds"):
        simulate_rounds(setting, TABLE_4.scores, policy, rounds=1)
    with pytest.raises(InvalidInput, match="seed"):
        simulate_rounds(setting, TABLE_4.scores, policy, seed=-1)
    with pytest.raises(InvalidInput, match="predictor"):
        simulate_rounds(setting, scored(3), policy)
    with pytest.raises(InvalidInput, match="predictor"):
        DraftingController(policy, setting, scored(3))
