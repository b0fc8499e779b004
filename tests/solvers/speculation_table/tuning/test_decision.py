"""Tests of the schedules chosen from sweeps."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.drawn_sweeps import CONCURRENCIES, OPTIONS, drawn_table, sweep_of
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from specopt.models.sweep import Condition, Measurement, Point, Sweep
from specopt.solvers.speculation_table.tuning.decision import Goal, Tuning, decide
from specopt.solvers.speculation_table.tuning.predictions import Predictor

seeds = st.integers(0, 10_000)
options = st.sets(st.integers(1, 7), min_size=1).map(lambda lengths: (None, *sorted(lengths)))


def _decide(sweep: Sweep, **goal: object) -> Tuning:
    return decide(Predictor(sweep), Goal(**goal))  # type: ignore[arg-type]


def _speed(table: dict[Point, Measurement], concurrency: int, option: int | None) -> float:
    return table[Point(Condition(concurrency), option)].tokens_per_second or 0.0


@settings(max_examples=12, deadline=None)
@given(seeds, options, st.booleans())
def test_robust_is_never_slower_than_no_speculation_where_measured(
    seed: int, measured: tuple[int | None, ...], idle: bool
) -> None:
    """Tests that `robust` keeps its promise on random tables, at every measured point of a batch that it covers."""
    table = drawn_table(seed)
    sweep = sweep_of(table, (*measured, 0) if idle else measured)
    found = _decide(sweep, robust=True)
    for concurrency in CONCURRENCIES:
        drafts = found.schedule.at(concurrency)
        if drafts is not None and (drafts in measured or (drafts == 0 and idle)):
            assert _speed(table, concurrency, drafts) >= _speed(table, concurrency, None)
        row = found.grid.row(concurrency)
        assert found.grid.low[row, found.option(concurrency)] >= found.grid.low[row, 0]


@settings(max_examples=12, deadline=None)
@given(seeds)
def test_a_complete_table_is_chosen_from_as_measured(seed: int) -> None:
    """Tests that the choice at a measured concurrency loses at most `loss`, or is the best integer of all."""
    table = drawn_table(seed)
    found = _decide(sweep_of(table), loss=0.01)
    for concurrency in CONCURRENCIES:
        drafts = found.schedule.at(concurrency)
        best = max(_speed(table, concurrency, k) for k in OPTIONS if k is not None)
        if drafts is not None:
            assert _speed(table, concurrency, drafts) >= 0.99 * best * (1 - 1e-9)
    mean = np.mean([np.log(_speed(table, c, found.schedule.at(c)) / _speed(table, c, None)) for c in CONCURRENCIES])
    assert found.schedule.speculates == (mean > 0.0) or not found.schedule.speculates


def test_a_robust_table_of_a_real_engine_is_never_slower() -> None:
    """Tests that `robust` keeps its promise on the sweep that was measured in vLLM."""
    from importlib.resources import files

    from specopt.instances.sweeps import read_sweeps

    sweep = read_sweeps([str(files("specopt.instances") / "data" / "measured" / "vllm-cpu-ngram.csv")])
    found = _decide(sweep, robust=True)
    speeds = {m.point: m.tokens_per_second or 0.0 for m in sweep.measurements}
    for concurrency in (1, 4, 8):
        drafts = found.schedule.at(concurrency)
        assert drafts is not None
        condition = Condition(concurrency)
        assert speeds[Point(condition, drafts)] > speeds[Point(condition, None)]


def test_speculation_that_never_pays_is_left_out() -> None:
    """Tests that a table in which drafts only cost gives one range of None, whatever the goal."""
    rows = [
        Measurement(Point(Condition(c), k), c * 100.0 * (1.0 if k is None else 0.8), None if k is None else 1.5)
        for c in (1, 8)
        for k in (None, 1, 3)
    ]
    for robust in (False, True):
        found = _decide(Sweep(tuple(rows)), robust=robust)
        assert found.schedule.ranges == ((1, 8, None),)
        assert found.schedule.best_single() is not None


def test_speculation_that_pays_at_times_needs_an_idle_engine_to_be_cheap() -> None:
    """Tests that `robust` leaves speculation out where 0 drafts may be slower, and says up to which batch it holds."""
    rows = [
        Measurement(Point(Condition(c), k), c * 100.0 * speed)
        for c, fast in ((1, 1.5), (2, 1.4), (4, 1.3), (16, 0.7))
        for k, speed in ((None, 1.0), (2, fast))
    ]
    assert _decide(Sweep(tuple(rows))).schedule.speculates
    found = _decide(Sweep(tuple(rows)), robust=True)
    assert found.schedule.ranges == ((1, 16, None),)
    assert any("up to batch" in note for note in found.notes)
    assert _decide(Sweep(tuple(rows)), robust=True, max_batch=4).schedule.ranges == ((1, 4, 2),)


def test_a_latency_target_takes_the_longest_draft_that_meets_it() -> None:
    """Tests that the time per output token of what is taken meets the target, and that of the next draft does not."""
    table = drawn_table(4)
    target = 1.3 * 64 / max(_speed(table, 64, k) for k in OPTIONS if k)
    found = _decide(sweep_of(table), tpot_seconds=target)
    for concurrency in CONCURRENCIES:
        meeting = [k for k in range(8) if concurrency / _speed(table, concurrency, k) <= target]
        if meeting and found.schedule.speculates:
            assert found.schedule.at(concurrency) == max(meeting)


def test_weights_decide_whether_speculation_pays() -> None:
    """Tests that the same table speculates for light loads and not for heavy ones."""
    rows = [
        Measurement(Point(Condition(c), k), c * 100.0 * speed)
        for c, fast in ((1, 1.5), (32, 0.6))
        for k, speed in ((None, 1.0), (0, 0.9), (2, fast))
    ]
    sweep = Sweep(tuple(rows))
    assert _decide(sweep, weights={1: 1.0, 32: 0.1}).schedule.speculates
    assert not _decide(sweep, weights={1: 0.1, 32: 5.0}).schedule.speculates
    with pytest.raises(InvalidInput, match="weights"):
        _decide(sweep, weights={5: 1.0})


def test_nothing_beyond_what_was_measured_is_recommended() -> None:
    """Tests that larger batches and longer drafts than measured are refused, unless extrapolation is asked for."""
    sweep = sweep_of(drawn_table(3), (None, 1, 3))
    with pytest.raises(InvalidInput, match="max_batch"):
        _decide(sweep, max_batch=128)
    with pytest.raises(InvalidInput, match="max_length"):
        _decide(sweep, max_length=5)
    found = _decide(sweep, max_batch=128, max_length=5, extrapolate=True)
    assert found.schedule.largest_batch == 128


def test_several_workloads_share_the_tokens() -> None:
    """Tests that serving two workloads has the harmonic mean of their throughputs, and one of them its own."""
    rows = [
        Measurement(Point(Condition(4, name), k), speed * (1.0 if k is None else fast))
        for name, speed, fast in (("chat", 100.0, 0.8), ("code", 300.0, 2.0))
        for k in (None, 3)
    ]
    sweep = Sweep(tuple(rows))
    both = _decide(sweep).grid
    assert both.mean[both.row(4), 0] == pytest.approx(2 / (1 / 100 + 1 / 300))
    assert both.mean[both.row(4), 4] == pytest.approx(2 / (1 / 80 + 1 / 600))
    assert not _decide(sweep, workload="chat").schedule.speculates
    assert _decide(sweep, workload="code").schedule.speculates
    with pytest.raises(InvalidInput, match="workload"):
        _decide(sweep, workload="poems")


def test_the_regret_bound_holds_between_measured_numbers() -> None:
    """Tests that the bound is the largest ratio of a low end to the best other high end, over the concurrencies."""
    found = _decide(sweep_of(drawn_table(7), (None, 0, 2, 4, 6)))
    expected = 0.0
    for c in CONCURRENCIES:
        row, taken = found.grid.row(c), found.option(c)
        others = np.delete(found.grid.high[row], taken)
        expected = max(expected, 1.0 - found.grid.low[row, taken] / np.nanmax(others))
    assert found.regret_bound == pytest.approx(expected)


def _rows(*rows: tuple[int, str, int | None, float]) -> Sweep:
    """Return a sweep of (concurrency, workload, draft length, tokens per second)."""
    return Sweep(tuple(Measurement(Point(Condition(c, name), k), speed) for c, name, k, speed in rows))


def test_robust_leaves_out_what_noise_may_explain() -> None:
    """Tests that a draft length whose runs scatter as far as it is better is not taken, and is without `robust`."""
    none, drafts = (600.0, 500.0), (720.0, 560.0, 900.0)
    sweep = _rows(*((8, "", None, x) for x in none), *((8, "", 3, x) for x in drafts))
    assert _decide(sweep).schedule.ranges == ((1, 8, 3),)
    found = _decide(sweep, robust=True)
    assert found.grid.low[0, 4] > found.grid.low[0, 0] > 0.0  # the throughputs alone would allow it
    assert found.grid.least[0, 4] < 1.0
    assert found.schedule.ranges == ((1, 8, None),)


def test_robust_serves_every_workload() -> None:
    """Tests that nothing is taken that was measured to slow one workload down, however much others gain."""
    sweep = _rows((8, "chat", None, 100.0), (8, "chat", 3, 98.0), (8, "code", None, 100.0), (8, "code", 3, 300.0))
    assert _decide(sweep).schedule.ranges == ((1, 8, 3),)
    assert _decide(sweep, robust=True).schedule.ranges == ((1, 8, None),)
    assert _decide(sweep, robust=True, workload="code").schedule.ranges == ((1, 8, 3),)


def test_a_latency_target_by_hand() -> None:
    """Tests that 14 ms per token take the longest draft below: 3 drafts take 13.3 ms, 5 take 15.4."""
    sweep = _rows((4, "", None, 200.0), (4, "", 0, 199.0), (4, "", 1, 330.0), (4, "", 3, 300.0), (4, "", 5, 260.0))
    for target, drafts in ((0.0125, 1), (0.014, 3), (0.016, 5)):
        lengths = (1, 3, 5)
        assert _decide(sweep, tpot_seconds=target, draft_lengths=lengths).schedule.ranges == ((1, 4, drafts),)


def test_drafts_shorter_than_measured_are_asked_for_but_not_taken() -> None:
    """Tests that they are predicted between no speculation and what was measured, and only taken with leave."""
    sweep = _rows((8, "", None, 100.0), (8, "", 5, 80.0), (8, "", 7, 70.0))
    found = _decide(sweep)
    row = found.grid.row(8)
    assert 78.0 < found.grid.mean[row, 2] < 130.0
    assert found.grid.mean[row, 2] > found.grid.mean[row, 0]  # by this number alone it would be taken
    assert found.schedule.ranges == ((1, 8, None),)
    assert found.regret_bound > 0.1
    for confidence, taken in ((0.9, 1), (0.99, None)):  # by the lower end of its band
        leave = decide(Predictor(sweep, confidence), Goal(extrapolate=True))
        assert leave.schedule.ranges == ((1, 8, taken),)
