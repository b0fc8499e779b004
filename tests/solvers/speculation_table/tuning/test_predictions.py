"""Tests of predicted throughput and its bands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from helpers.drawn_sweeps import drawn_table, sweep_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from specopt.models.errors import InvalidInput
from specopt.models.sweep import Condition, Measurement, Point, Sweep
from specopt.solvers.speculation_table.tuning.predictions import (
    NOISE,
    Predictor,
    logit_rate,
    tokens_of,
)

SEEDS = range(8)


@given(st.floats(0.001, 0.999), st.integers(1, 30))
def test_acceptance_lengths_and_rates_invert_each_other(rate: float, drafts: int) -> None:
    """Tests that the logit of the rate behind an acceptance length is that of the rate, with its
    derivative.
    """
    tokens, slope = tokens_of(np.array([np.log(rate / (1 - rate))]), np.array([float(drafts)]))
    assert tokens[0] == pytest.approx(sum(rate**j for j in range(drafts + 1)), rel=1e-9)
    logit = logit_rate(tokens, np.array([float(drafts)]))[0]
    assert 1 / (1 + np.exp(-logit)) == pytest.approx(rate, rel=1e-6)
    moved = tokens_of(np.array([logit + 1e-5]), np.array([float(drafts)]))[0][0]
    assert np.log(moved / tokens[0]) / 1e-5 == pytest.approx(slope[0], rel=1e-3, abs=1e-6)


def test_what_was_measured_is_predicted_as_measured() -> None:
    """Tests that a measured point keeps its number, whatever the regression makes of it."""
    table = drawn_table(1)
    found = Predictor(sweep_of(table)).predict(table)
    assert found.measured.all()
    assert found.mean == pytest.approx([m.tokens_per_second for m in table.values()], rel=1e-12)
    assert np.log(found.high / found.low) == pytest.approx(2 * 1.6448536 * NOISE, rel=1e-6)


def test_bands_of_points_left_out_hold_their_share() -> None:
    """Tests that nominal 90 % cover their share over random tables with a third of their points
    left out.
    """
    inside = []
    for seed in SEEDS:
        table = drawn_table(seed)
        rng = np.random.default_rng(seed)
        hidden = [p for p in table if p.draft_length not in (None, 0, 7) and rng.random() < 0.33]
        sweep = Sweep(tuple(m for p, m in table.items() if p not in hidden))
        found = Predictor(sweep).predict(hidden)
        truth = np.array([table[p].tokens_per_second or 0.0 for p in hidden])
        inside += ((found.low <= truth) & (truth <= found.high)).tolist()
    assert len(inside) > 80
    assert 0.85 <= np.mean(inside) <= 0.97


def test_confidence_widens_the_bands() -> None:
    """Tests that a band that is to hold more is wider, for measured and for unmeasured points."""
    sweep = sweep_of(drawn_table(2), (None, 1, 3, 7))
    points = [Point(Condition(4), 3), Point(Condition(4), 5)]
    narrow, wide = (Predictor(sweep, share).predict(points) for share in (0.5, 0.95))
    assert (np.log(wide.high / wide.low) > 1.5 * np.log(narrow.high / narrow.low)).all()


def test_repetitions_say_how_noisy_a_run_is() -> None:
    """Tests that the band of a measured point follows the spread of repeated runs and shrinks with
    their number.
    """
    rng = np.random.default_rng(0)

    def runs(many: int, spread: float) -> float:
        rows = [
            Measurement(Point(Condition(c), option), c * 100.0 * np.exp(rng.normal(0.0, spread)))
            for c in (1, 2, 4, 8)
            for option in (None, 2)
            for _ in range(many)
        ]
        found = Predictor(Sweep(tuple(rows))).predict([Point(Condition(4), 2)])
        return float(np.log(found.high / found.low)[0])

    assert runs(4, 0.1) == pytest.approx(2 * 1.645 * 0.1 / 2, rel=0.4)
    assert runs(16, 0.1) == pytest.approx(2 * 1.645 * 0.1 / 4, rel=0.3)


def test_a_workload_known_at_one_point_follows_the_others() -> None:
    """Tests that a workload whose rate of acceptance and speed are those of another is predicted
    like it.
    """
    table = drawn_table(5)
    rows = [
        Measurement(
            Point(Condition(p.condition.concurrency, name), p.draft_length),
            speed * m.tokens_per_second,
            m.acceptance_length,
        )
        for name, speed in (("a", 1.0), ("b", 1.1), ("c", 0.9))
        for p, m in table.items()
        if m.tokens_per_second
        and (name != "c" or (p.draft_length == 3 and p.condition.concurrency == 8))
    ]
    wanted = [Point(Condition(8, "c"), option) for option in (None, 1, 5)]
    truth = [
        0.9 * (table[Point(Condition(8), p.draft_length)].tokens_per_second or 0.0) for p in wanted
    ]
    found = Predictor(Sweep(tuple(rows))).predict(wanted)
    assert found.mean == pytest.approx(truth, rel=0.05)
    assert not found.measured.any()


def test_there_must_be_drafts() -> None:
    """Tests that a sweep with nothing but a baseline is refused."""
    with pytest.raises(InvalidInput, match="with speculation"):
        Predictor(sweep_of(drawn_table(0), (None,)))


@pytest.mark.parametrize("kept", [(None, 1, 7), (1, 4, 7)])
def test_lengths_between_measured_ones_follow_the_law(kept: tuple[int | None, ...]) -> None:
    """Tests that smooth pass times and acceptance are found again from few lengths, with a baseline
    or without.
    """
    acceptance = {k: float((1 - 0.7 ** (k + 1)) / 0.3) for k in range(8)}
    table = {}
    for c in (1, 2, 4, 8, 16, 32):
        for k in (None, *range(1, 8)):
            drafts = k or 0
            seconds = 0.02 * (
                1.0 + 0.004 * c * (1 + drafts) + 0.06 * drafts + 0.03 * (k is not None)
            )
            table[Point(Condition(c), k)] = c * acceptance[drafts] / seconds
    rows = tuple(Measurement(p, speed) for p, speed in table.items() if p.draft_length in kept)
    wanted = [p for p in table if p.draft_length in (2, 3, 5, 6)]
    found = Predictor(Sweep(rows)).predict(wanted)
    assert found.mean == pytest.approx([table[p] for p in wanted], rel=0.02)


def test_an_unmeasured_length_is_less_sure() -> None:
    """Tests that bands of a length that was measured nowhere are made from lengths held out
    whole.
    """
    table = drawn_table(3)
    rows = {p: m for p, m in table.items() if p.draft_length in (None, 1, 3, 7)}
    cell = Point(Condition(8), 3)
    lacking = {p: m for p, m in rows.items() if p != cell}
    nowhere = {p: m for p, m in rows.items() if p.draft_length != 3}
    width = [
        float(np.log(found.high / found.low)[0])
        for found in (
            Predictor(Sweep(tuple(r.values()))).predict([cell]) for r in (lacking, nowhere)
        )
    ]
    assert width[1] > 1.2 * width[0]


def test_zero_drafts_stand_in_for_no_speculation() -> None:
    """Tests that draft length 0 is the baseline where nothing ran without speculation, and that the
    notes say so.
    """
    predictor = Predictor(sweep_of(drawn_table(0), (0, 1, 3)))
    assert "draft_length 0 is used instead" in predictor.notes[0]
    assert predictor.predict([Point(Condition(4), None)]).measured.all()


def test_a_workload_known_at_one_point_is_judged_by_others_held_out_so() -> None:
    """Tests that its bands are wider than points left out one by one would make them, where
    workloads differ much.
    """

    class EachByItself(Predictor):
        def _misses(
            self, workload: str, new_length: bool, new_load: bool
        ) -> Iterator[NDArray[np.float64]]:
            yield from ()

    rng = np.random.default_rng(4)
    rows = []
    for name in "abcdefg":
        speed, drafting = 100.0 * np.exp(rng.normal(0.0, 0.1)), np.exp(0.15 * rng.standard_t(2))
        for option in (None, 3, 5, 7):
            if name != "g" or option == 3:
                fast = 1.0 if option is None else 1.4 * drafting / (1.0 + 0.03 * option)
                rows.append(Measurement(Point(Condition(8, name), option), speed * fast))
    wanted = [Point(Condition(8, "g"), option) for option in (None, 5, 7)]
    held, alone = (kind(Sweep(tuple(rows))).predict(wanted) for kind in (Predictor, EachByItself))
    assert (np.log(held.high / held.low) > 1.1 * np.log(alone.high / alone.low)).all()
