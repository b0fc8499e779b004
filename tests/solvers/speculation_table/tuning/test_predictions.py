"""Tests of predicted throughput, its bands and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.drawn_sweeps import drawn_table, sweep_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from specopt.models.sweep import Condition, Measurement, Point, Setup, Sweep
from specopt.solvers.speculation_table.tuning.law import logit_rate, tokens_of
from specopt.solvers.speculation_table.tuning.limits import SUSPECT, most_tokens
from specopt.solvers.speculation_table.tuning.predictions import NOISE, Predictor

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
    """Tests that a measured point keeps its number, whatever the law makes of it."""
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
    assert 0.8 <= np.mean(inside) <= 0.97


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
    assert found.mean == pytest.approx(truth, rel=0.15)
    assert not found.measured.any()


def test_a_workload_has_an_acceptance_of_its_own_from_throughput() -> None:
    """Tests that one measured length tells how a workload without acceptance lengths gains less
    with every draft than others do.
    """
    rates = {"code": 0.85, "math": 0.75, "chat": 0.45}

    def speed(name: str, drafts: int) -> float:
        tokens = sum(rates[name] ** j for j in range(drafts + 1))
        return 100.0 * tokens / (1.02 + 0.06 * drafts) if drafts else 100.0

    rows = [
        Measurement(Point(Condition(4, name), k or None), speed(name, k))
        for name in rates
        for k in (0, 1, 2, 4, 8)
        if name != "chat" or k in (0, 4)
    ]
    wanted = [Point(Condition(4, "chat"), k) for k in (1, 2, 8)]
    found = Predictor(Sweep(tuple(rows))).predict(wanted)
    assert found.mean == pytest.approx([speed("chat", k) for k in (1, 2, 8)], rel=0.08)


def test_there_must_be_drafts() -> None:
    """Tests that a sweep with nothing but a baseline is refused."""
    with pytest.raises(InvalidInput, match="with speculation"):
        Predictor(sweep_of(drawn_table(0), (None,)))


@pytest.mark.parametrize("kept", [(None, 1, 7), (1, 4, 7)])
def test_lengths_between_measured_ones_follow_the_law(kept: tuple[int | None, ...]) -> None:
    """Tests that smooth pass times and acceptance are found again from few lengths, with a baseline
    or without.
    """
    table = {}
    for c in (1, 2, 4, 8, 16, 32):
        for k in (None, *range(1, 8)):
            drafts = k or 0
            seconds = 0.02 * (
                1.0 + 0.004 * c * (1 + drafts) + 0.06 * drafts + 0.03 * (k is not None)
            )
            table[Point(Condition(c), k)] = c * (1 - 0.7 ** (drafts + 1)) / 0.3 / seconds
    rows = tuple(Measurement(p, speed) for p, speed in table.items() if p.draft_length in kept)
    wanted = [p for p in table if p.draft_length in (2, 3, 5, 6)]
    found = Predictor(Sweep(rows)).predict(wanted)
    assert found.mean == pytest.approx([table[p] for p in wanted], rel=0.07)


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
    assert "the baseline is draft_length 0" in predictor.notes[0]
    assert predictor.predict([Point(Condition(4), None)]).measured.all()


# ---------------------------------------------------------------- limits


@given(st.lists(st.floats(0.05, 0.98), min_size=2, max_size=9), st.data())
def test_limits_of_acceptance_lengths_hold_every_law_that_is_concave(
    rates: list[float], data: st.DataObject
) -> None:
    """Tests that lengths which grow ever less, seen at some draft lengths, are nowhere above their
    limits up to the longest one, and limits are at most K + 1.
    """
    every = dict(enumerate(np.cumsum([1.0, *np.cumprod(rates)]).tolist()))
    seen = data.draw(st.sets(st.integers(1, len(rates)), min_size=1))
    known = {k: every[k] for k in seen}
    limits = [most_tokens(k, known, sequential=True) for k in range(1, 2 * max(seen) + 1)]
    assert all(limits[k - 1] >= every[k] * (1 - 1e-12) for k in range(1, max(seen) + 1))
    assert all(most <= k + 2 for k, most in enumerate(limits))
    beyond = limits[max(seen) - 1 :]
    mean = (every[max(seen)] - 1.0) / max(seen)
    assert np.all(np.diff(beyond) <= mean + 1e-9)
    assert most_tokens(len(rates) + 5, known, sequential=False) == len(rates) + 6


@st.composite
def random_rows(draw: st.DrawFn) -> list[Measurement]:
    """Draw rows at two contexts, loads and any lengths, some with acceptance lengths."""
    rows = []
    lengths = sorted(draw(st.sets(st.integers(1, 8), min_size=1, max_size=4)))
    for context in (1000, 8000):
        for c in (1, 8, 32):
            none = draw(st.floats(20.0, 60.0)) * c
            rows.append(Measurement(Point(Condition(c, "", context), None), none))
            for k in lengths:
                rate = draw(st.floats(0.02, 0.95))
                tokens = sum(rate**j for j in range(k + 1))
                speed = none * tokens * draw(st.floats(0.3, 1.3))
                known = tokens if draw(st.booleans()) else None
                rows.append(Measurement(Point(Condition(c, "", context), k), speed, known))
    return rows


@settings(max_examples=8, deadline=None)
@given(random_rows())
def test_no_prediction_exceeds_what_measured_rows_allow(rows: list[Measurement]) -> None:
    """Tests that means and bands of unmeasured lengths keep to no speculation times the tokens of a
    step, times a factor where a measured row exceeds it, and that measured rows stay as they are.
    """
    found = Predictor(Sweep(tuple(rows)))
    speeds = {m.point: m.tokens_per_second or 0.0 for m in rows}
    for condition in {m.point.condition for m in rows}:
        own = [m for m in rows if m.point.condition == condition and m.point.draft_length]
        known = {m.point.draft_length or 0: m.acceptance_length or 0.0 for m in own}
        known = {k: tokens for k, tokens in known.items() if tokens}
        none = speeds[Point(condition, None)]
        ratios = [
            speeds[m.point] / none / most_tokens(m.point.draft_length or 0, known, True)
            for m in own
        ]
        assume(abs(max(ratios) - SUSPECT) > 1e-9)  # rounding decides there
        factor = max(ratios) if max(ratios) > SUSPECT else 1.0
        points = [Point(condition, k) for k in range(1, 14)]
        predicted = found.predict(points)
        for k, point in enumerate(points):
            if point in speeds:
                assert predicted.mean[k] == pytest.approx(speeds[point], rel=1e-12)
                continue
            limit = none * most_tokens(point.draft_length or 0, known, True) * factor
            assert predicted.low[k] <= predicted.mean[k] <= predicted.high[k]
            assert predicted.high[k] <= limit * (1 + 1e-9)
            assert predicted.mean[k] * np.exp(predicted.more[k]) <= limit * (1 + 1e-9)


def test_a_suspect_baseline_is_named() -> None:
    """Tests that a speed-up beyond the acceptance length is noted with its load, and widens the
    limits there.
    """
    rows = [
        Measurement(Point(Condition(c), k), speed, tokens)
        for c, none in ((1, 100.0), (8, 400.0))
        for k, speed, tokens in ((None, none, None), (5, 260.0 * c, 2.0))
    ]
    predictor = Predictor(Sweep(tuple(rows)))
    (note,) = [note for note in predictor.notes if "acceptance length allows" in note]
    assert "at 8 requests" in note and "2.60 times" in note
    assert predictor.predict([Point(Condition(8), 4)]).high[0] <= 400.0 * 2.0 * 2.6 * (1 + 1e-9)


def test_blocks_and_trees_may_accept_less_of_more() -> None:
    """Tests that only drafters that draft token by token limit a shorter draft by a longer one."""

    def high(setup: Setup) -> float:
        rows = (
            Measurement(Point(Condition(1), None), 100.0),
            Measurement(Point(Condition(1), 6), 105.0, 1.1, setup=setup),
        )
        return float(Predictor(Sweep(rows)).predict([Point(Condition(1), 1)]).high[0])

    assert high(Setup("mtp")) <= 110.0 * (1 + 1e-9)
    assert 110.0 < high(Setup("z-lab/DFlash-8b")) <= 200.0 * (1 + 1e-9)
    assert Setup("mtp", topk=4).is_sequential is False
