"""Tests of the schedules chosen from sweeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.drawn_sweeps import CONCURRENCIES, OPTIONS, drawn_table, sweep_of
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from specopt.models.sweep import Condition, Measurement, Point, Sweep
from specopt.solvers.speculation_table.prices import FREE, Price, Prices
from specopt.solvers.speculation_table.tuning.decision import decide
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.predictions import Predictor
from specopt.solvers.speculation_table.tuning.tuning import Tuning

seeds = st.integers(0, 10_000)
options = st.sets(st.integers(1, 7), min_size=1).map(lambda lengths: (None, *sorted(lengths)))


def _decide(sweep: Sweep, **goal: object) -> Tuning:
    return decide(Predictor(sweep), Goal(**goal))  # type: ignore[arg-type]


def _rows(*rows: tuple[int, str, int | None, float]) -> Sweep:
    """Return a sweep of (concurrency, workload, draft length, tokens per second)."""
    return Sweep(
        tuple(Measurement(Point(Condition(c, name), k), speed) for c, name, k, speed in rows)
    )


def _speed(table: dict[Point, Measurement], concurrency: int, option: int | None) -> float:
    return table[Point(Condition(concurrency), option)].tokens_per_second or 0.0


@settings(max_examples=4, deadline=None)
@given(seeds, options, st.booleans())
def test_robust_is_never_slower_than_no_speculation_where_measured(
    seed: int, measured: tuple[int | None, ...], idle: bool
) -> None:
    """Tests that `robust` keeps its promise on random tables, at every measured point of a batch
    that it covers.
    """
    table = drawn_table(seed)
    sweep = sweep_of(table, (*measured, 0) if idle else measured)
    found = _decide(sweep, robust=True)
    for concurrency in CONCURRENCIES:
        if concurrency > found.schedule.largest_batch:
            continue
        drafts = found.schedule.at(concurrency)
        if drafts is not None and (drafts in measured or (drafts == 0 and idle)):
            assert _speed(table, concurrency, drafts) >= _speed(table, concurrency, None)
        row = found.grid.row(concurrency)
        assert (
            found.grid.least[row, found.option(concurrency)]
            * found.remaining(found.schedule.ranges)[0, row]
            >= 1.0
        )


@settings(max_examples=4, deadline=None)
@given(seeds)
def test_no_answer_has_a_larger_geometric_mean(seed: int) -> None:
    """Tests that neither a measured length everywhere nor no speculation beats the choice, a
    table's cost included.
    """
    table = drawn_table(seed)
    found = _decide(sweep_of(table), loss=0.01)

    def mean(speeds: list[float]) -> float:
        return float(np.mean(np.log(speeds)))

    chosen = [found.speedup(c) * _speed(table, c, None) for c in CONCURRENCIES]
    for option in [None, *range(1, 8)]:
        assert mean(chosen) >= mean([_speed(table, c, option) for c in CONCURRENCIES]) - 1e-9
    if (
        len(found.schedule.ranges) > 1
    ):  # within the ranges nothing is lost beyond `loss`, but for what all pays
        for c in CONCURRENCIES:
            best = max(_speed(table, c, k) for k in range(8))
            assert _speed(table, c, found.schedule.at(c)) >= 0.99 * best * (1 - 1e-9)


def test_the_price_of_a_table_decides() -> None:
    """Tests that a table is taken where it is free and not at 14 % each, and that the note says
    where this flips.
    """
    speeds = ((1, (1, 1.2, 1.5)), (8, (1, 1.3, 1.2)), (64, (1, 1.1, 0.9)))
    sweep = _rows(
        *(
            (c, "", k, c * 100.0 * f)
            for c, own in speeds
            for k, f in zip((None, 1, 4), own, strict=True)
        )
    )

    def ranges(share: float) -> Tuning:
        price = Price((1,), (0.0,), (share,), (0.2,), "a test")
        return _decide(sweep, draft_lengths=(1, 4), prices=Prices(FREE, price))

    assert [length for *_, length in ranges(0.0).schedule.ranges] == [4, 1]
    dear = ranges(0.14)
    assert dear.schedule.ranges == ((1, 64, 1),)
    flip = 1.0 - (1.2 * 1.3 * 1.1 / (1.5 * 1.3 * 1.1)) ** (1 / 3)
    (note,) = [note for note in dear.notes if "a table of" in note]
    assert f"the table pays off if it costs less than {flip:.1%}" in note
    assert "a test" in note
    for share, taken in ((0.99 * flip, True), (1.01 * flip, False)):
        assert (len(ranges(share).schedule.ranges) > 1) == taken


def test_the_price_of_steps_without_drafts_decides() -> None:
    """Tests that a table flips at the price of 0 drafts at which one length is worth as much,
    unless 0 was measured.
    """
    speeds = ((1, 2.0), (8, 1.4), (64, 0.7))
    sweep = _rows(
        *((c, "", k, c * 100.0 * f) for c, fast in speeds for k, f in ((None, 1.0), (3, fast)))
    )
    cheap, dear = (Prices(Price((1,), (0.0,), (x,), (0.5,), "a test"), FREE) for x in (0.29, 0.31))
    found = _decide(sweep, prices=cheap)
    assert [length for *_, length in found.schedule.ranges] == [3, 0]
    assert any("which were not measured, cost less than 30.0%" in note for note in found.notes)
    assert _decide(sweep, prices=dear).schedule.ranges == ((1, 64, 3),)
    measured = Sweep((*sweep.measurements, Measurement(Point(Condition(64), 0), 64 * 100 * 0.95)))
    assert _decide(measured, prices=dear).schedule.at(64) == 0
    assert (
        _decide(measured, draft_lengths=(3,), prices=replace(dear, shortest=1)).schedule.at(64) == 3
    )


def test_robust_ends_where_drafts_may_be_slower() -> None:
    """Tests that `robust` caps the batch and says what then waits, or says up to where drafts
    hold.
    """
    loads = ((1, 100.0, 2.6), (16, 900.0, 1.7), (64, 1500.0, 1.2), (256, 1600.0, 0.8))
    sweep = _rows(
        *((c, "", k, base * f) for c, base, fast in loads for k, f in ((None, 1.0), (2, fast)))
    )
    found = _decide(sweep, robust=True)
    assert found.cap is not None and 64 <= found.cap < 256
    assert found.schedule.ranges == ((1, found.cap, 2),)
    assert (
        found.grid.least[found.grid.row(found.cap), 3]
        >= 1.0
        > found.grid.least[found.grid.row(found.cap + 1), 3]
    )
    waiting = found.grid.mean[found.grid.row(found.cap), 3]
    assert found.speedup(256) == pytest.approx(waiting / 1600.0)
    assert any(
        f"limit the engine's batch to {found.cap}" in note and f"{waiting:,.4g}" in note
        for note in found.notes
    )
    loads = ((1, 100.0, 1.5), (2, 200.0, 1.4), (4, 400.0, 1.3), (16, 1600.0, 0.7))
    sweep = _rows(
        *((c, "", k, base * f) for c, base, fast in loads for k, f in ((None, 1.0), (2, fast)))
    )
    assert _decide(sweep).schedule.speculates
    found = _decide(sweep, robust=True)
    assert found.schedule.ranges == ((1, 16, None),)
    assert any("drafts are safe up to" in note for note in found.notes)
    assert _decide(sweep, robust=True, max_batch=4).schedule.ranges == ((1, 4, 2),)


def test_a_latency_target_takes_what_carries_most() -> None:
    """Tests that capacities are those of a scan of the measured loads, and that the fastest option
    carries most.
    """
    table = drawn_table(4)
    target = 1.1 * 16 / max(_speed(table, 16, k) for k in OPTIONS if k)
    found = _decide(sweep_of(table), tpot_seconds=target)
    for one in found.capacity:
        if one.draft_length == "table":
            continue
        k = None if one.draft_length == "none" else int(one.draft_length)
        meets = [c for c in CONCURRENCIES if c / _speed(table, c, k) <= target]
        late = [c for c in CONCURRENCIES if c / _speed(table, c, k) > target]
        assert (max(meets) if meets else 0) <= one.concurrency < min(late, default=65)
        assert one.low <= one.concurrency <= one.high
        assert one.at_least == (not late)
    assert found.carries == max(one.concurrency for one in found.capacity) >= 16


def test_weights_decide_whether_speculation_pays() -> None:
    """Tests that the same table speculates for light loads and not for heavy ones."""
    loads = ((1, 100.0, 1.5), (32, 3200.0, 0.6))
    lengths = ((None, 1.0), (0, 0.9))
    sweep = _rows(
        *((c, "", k, base * f) for c, base, fast in loads for k, f in (*lengths, (2, fast)))
    )
    assert _decide(sweep, weights={1: 1.0, 32: 0.1}).schedule.speculates
    assert not _decide(sweep, weights={1: 0.1, 32: 5.0}).schedule.speculates
    with pytest.raises(InvalidInput, match="weights"):
        _decide(sweep, weights={5: 1.0})


def test_nothing_beyond_what_was_measured_is_recommended() -> None:
    """Tests that larger batches and longer drafts than measured are refused, unless extrapolation
    is asked for.
    """
    sweep = sweep_of(drawn_table(3), (None, 1, 3))
    with pytest.raises(InvalidInput, match="max_batch"):
        _decide(sweep, max_batch=128)
    with pytest.raises(InvalidInput, match="max_length"):
        _decide(sweep, max_length=5)
    found = _decide(sweep, max_batch=128, max_length=5, extrapolate=True)
    assert found.schedule.largest_batch == 128


def test_several_workloads_share_the_tokens() -> None:
    """Tests that serving two workloads has the harmonic mean of their throughputs, and one of them
    its own.
    """
    sweep = _rows(
        (4, "chat", None, 100.0),
        (4, "chat", 3, 80.0),
        (4, "code", None, 300.0),
        (4, "code", 3, 600.0),
    )
    both = _decide(sweep).grid
    assert both.mean[both.row(4), 0] == pytest.approx(2 / (1 / 100 + 1 / 300))
    assert both.mean[both.row(4), 4] == pytest.approx(2 / (1 / 80 + 1 / 600))
    assert not _decide(sweep, workload="chat").schedule.speculates
    assert _decide(sweep, workload="code").schedule.speculates
    with pytest.raises(InvalidInput, match="workload"):
        _decide(sweep, workload="poems")


def test_the_regret_bound_holds_between_measured_numbers() -> None:
    """Tests that the bound is the largest ratio of a low end to a high end of answers that may be
    better.
    """
    found = _decide(sweep_of(drawn_table(7), (None, 0, 2, 4, 6)))
    expected = 0.0
    for c in CONCURRENCIES:
        row, taken = found.grid.row(c), found.option(c)
        others = [found.grid.high[row, k] for k in found.rivals if k != taken]
        expected = (
            max(expected, 1.0 - found.grid.low[row, taken] / np.nanmax(others))
            if others
            else expected
        )
    assert found.regret_bound == pytest.approx(expected)
    sweep = _rows(
        (1, "", None, 100.0), (64, "", None, 2000.0), (1, "", 3, 300.0), (64, "", 3, 1900.0)
    )
    assert (
        _decide(sweep, single=True, draft_lengths=(3,)).regret_bound == 0.0
    )  # none is better at 64, and no better answer


def test_robust_leaves_out_what_noise_may_explain() -> None:
    """Tests that a draft length whose runs scatter as far as it is better is not taken, and is
    without `robust`.
    """
    none, drafts = (600.0, 500.0), (720.0, 560.0, 900.0)
    sweep = _rows(*((8, "", None, x) for x in none), *((8, "", 3, x) for x in drafts))
    assert _decide(sweep).schedule.ranges == ((1, 8, 3),)
    found = _decide(sweep, robust=True)
    assert found.grid.low[0, 4] > found.grid.low[0, 0] > 0.0  # the throughputs alone would allow it
    assert found.grid.least[0, 4] < 1.0
    assert found.schedule.ranges == ((1, 8, None),)


def test_robust_serves_every_workload() -> None:
    """Tests that nothing is taken that was measured to slow one workload down, however much others
    gain.
    """
    sweep = _rows(
        (8, "chat", None, 100.0),
        (8, "chat", 3, 98.0),
        (8, "code", None, 100.0),
        (8, "code", 3, 300.0),
    )
    assert _decide(sweep).schedule.ranges == ((1, 8, 3),)
    assert _decide(sweep, robust=True).schedule.ranges == ((1, 8, None),)
    assert _decide(sweep, robust=True, workload="code").schedule.ranges == ((1, 8, 3),)


def test_a_latency_target_by_hand() -> None:
    """Tests that equal capacities go to the higher throughput, never to the longer draft; unmet
    targets are said.
    """
    sweep = _rows(
        (4, "", None, 200.0),
        (4, "", 0, 199.0),
        (4, "", 1, 330.0),
        (4, "", 3, 300.0),
        (4, "", 5, 260.0),
    )
    for target, carried in (
        (0.0125, [0, 4, 0, 0]),
        (0.014, [0, 4, 4, 0]),
        (0.021, [4] * 4),
        (0.01, [0] * 4),
    ):
        found = _decide(sweep, tpot_seconds=target)
        assert found.schedule.ranges == ((1, 4, 1),)
        assert [one.concurrency for one in found.capacity] == carried
        assert any("no option meets" in note for note in found.notes) == (not any(carried))


def _timed(*rows: tuple[int, int | None, float, dict[str, float]]) -> Sweep:
    return Sweep(
        tuple(Measurement(Point(Condition(c), k), speed, also=also) for c, k, speed, also in rows)
    )


def test_times_of_the_load_generator_go_first() -> None:
    """Tests that a sweep's own times count before concurrency / throughput, that waits are
    subtracted where known, that percentiles come from their own columns only, and that queueing
    loads and long waits are not carried."""
    plain = {8: 800.0, 16: 1400.0, 32: 2000.0}  # 10, 11.4 and 16 ms
    times = {
        c: {"mean_tpot_ms": 950.0 * c / speed, "mean_ttft_ms": 20.0 * c}
        for c, speed in plain.items()
    }
    none = [
        (c, None, speed * 0.5, {"mean_tpot_ms": 2000.0 * c / speed}) for c, speed in plain.items()
    ]

    def carried(extra: dict[int, dict[str, float]], **goal: object) -> int:
        sweep = _timed(*none, *((c, 3, speed, extra.get(c, {})) for c, speed in plain.items()))
        found = _decide(sweep, **{"tpot_seconds": 0.0109, **goal})
        return next(one.concurrency for one in found.capacity if one.draft_length == 3)

    assert 8 <= carried({}) < 16 <= carried(times)
    wait = {c: {"mean_ttft_ms": 500.0, "output_tokens": 1000.0} for c in plain}
    assert carried(wait, tpot_seconds=0.011) >= 16 > carried({}, tpot_seconds=0.011)
    queueing = times | {32: {"mean_tpot_ms": 5.0}}
    assert carried(queueing, tpot_seconds=0.02) == 31 < carried(times, tpot_seconds=0.02) == 32
    with pytest.raises(
        InvalidInput, match=r"p99_tpot_ms is missing for draft_length none at concurrency 8"
    ):
        carried(times, tpot_of="p99")
    with pytest.raises(InvalidInput, match="mean_ttft_ms is missing"):
        carried(times, ttft_seconds=0.3)
    for one in none:
        one[3].update(p99_tpot_ms=30.0, mean_ttft_ms=9.0)
    tails = {c: also | {"p99_tpot_ms": 9.0 if c < 32 else 30.0} for c, also in times.items()}
    assert 16 <= carried(tails, tpot_of="p99") < 32
    assert 8 <= carried(times, tpot_seconds=0.02, ttft_seconds=0.3) < 16


def test_memory_bounds_the_choice() -> None:
    """Tests that no option carries more than fits, that ranges end there, that loads beyond are not
    averaged, and that drafts are compared at their own largest load.
    """
    sweep = _rows(
        *((c, "", k, c * 100.0 * f) for c in (1, 32, 64) for k, f in ((None, 1.0), (3, 1.5)))
    )
    found = _decide(sweep, room=(40, 30))
    assert [one.concurrency for one in found.capacity] == [40, 30]
    assert not any(one.at_least for one in found.capacity)
    assert found.concurrencies == (1, 32)
    assert found.schedule.ranges == ((1, 30, 3),) and found.cap == 30
    assert found.speedup(32) == pytest.approx(1.5 * 30 / 32, rel=0.02)
    assert _decide(sweep, room=(64, 0)).schedule.ranges == ((1, 64, None),)
    assert _decide(sweep, room=(64, 2)).schedule.ranges == ((1, 64, None),)  # most then wait
    with pytest.raises(InvalidInput, match="memory: expected enough for 1 requests"):
        _decide(sweep, room=(0, 0))


def test_between_measured_loads_their_winners_hold() -> None:
    """Tests that no other length is set between loads with one winner, and that each of two winners
    holds as far as its load is the nearer one.
    """
    table = {1: (130, 160, 158, 150), 16: (1400, 1700, 1690, 1500), 64: (3000, 3300, 3200, 2600)}
    lengths = (1, 2, 4, 7)
    sweep = _rows(
        *((c, "", None, 70.0 * c**0.85) for c in table),
        *(
            (c, "", k, speed)
            for c, own in table.items()
            for k, speed in zip(lengths, own, strict=True)
        ),
    )
    free = Prices(FREE, FREE)
    assert _decide(sweep, prices=free).schedule.ranges == ((1, 64, 2),)
    loads = ((1, 220.0, 260.0), (64, 4000.0, 3000.0))
    sweep = _rows(
        *((c, "", None, 100.0 * c**0.85) for c, *_ in loads),
        *((c, "", k, s) for c, *own in loads for k, s in zip((1, 5), own, strict=True)),
    )
    assert _decide(sweep, prices=free).schedule.ranges == ((1, 8, 5), (9, 64, 1))


def test_what_carries_most_and_what_gives_most_are_both_named() -> None:
    """Tests that a target of latency names the option that gives most tokens, where it is another
    one.
    """
    sweep = _rows(
        *((c, "", None, c * 100.0 * 0.9) for c in (1, 8)),
        *((c, "", 1, c * 100.0) for c in (1, 8)),
        *((c, "", 4, c * 100.0 * f) for c, f in ((1, 3.0), (8, 0.95))),
    )
    found = _decide(sweep, tpot_seconds=0.0102, single=True)
    assert found.schedule.ranges == ((1, 8, 1),)
    assert any("capacity is largest with 1 drafts: 8 requests;" in n for n in found.notes)


def test_break_even_by_hand() -> None:
    """Tests that drafts pay from an acceptance length by hand, or from a factor where acceptance
    was not measured.
    """
    rows = [
        Measurement(Point(Condition(4), None), 100.0),
        Measurement(Point(Condition(4), 3), 160.0, 2.4),
        Measurement(Point(Condition(4), 5), 80.0, 2.8),
    ]
    assert [
        (one["draft_length"], one["acceptance_length"])
        for one in _decide(Sweep(tuple(rows))).break_even
    ] == [(3, pytest.approx(1.5)), (5, pytest.approx(3.5))]
    sweep = _rows((4, "", None, 100.0), (4, "", 3, 160.0))
    assert [one["factor"] for one in _decide(sweep).break_even] == [pytest.approx(0.625)]


def test_a_mix_weighs_the_tokens() -> None:
    """Tests that speeds add harmonically by their shares, that the whole is no class, and that
    shares are checked.
    """
    runs = (("all", 9.0, 1.0), ("chat", 100.0, 80.0), ("code", 100.0, 400.0))
    sweep = _rows(
        *(
            (1, name, k, speed)
            for name, none, fast in runs
            for k, speed in ((None, none), (3, fast))
        )
    )
    grid = _decide(sweep, mix={"chat": 9.0, "code": 1.0}).grid
    assert grid.mean[0, 4] == pytest.approx(1.0 / (0.9 / 80 + 0.1 / 400))
    assert not _decide(sweep, mix={"chat": 0.9, "code": 0.1}).schedule.speculates
    assert _decide(sweep, mix={"chat": 0.5, "code": 0.5}).schedule.speculates
    assert _decide(sweep).grid.mean[0, 4] == pytest.approx(1.0 / (0.5 / 80 + 0.5 / 400))
    assert _decide(sweep, workload="all").grid.mean[0, 4] == 1.0
    with pytest.raises(InvalidInput, match="mix: expected a measured workload"):
        _decide(sweep, mix={"poems": 1.0})
    with pytest.raises(InvalidInput, match=r"mix\[chat\]"):
        _decide(sweep, mix={"chat": 0.0})


def test_without_no_speculation_the_answer_is_relative() -> None:
    """Tests that the best constant length stands for none where neither none nor 0 was measured,
    and is said to.
    """
    speeds = ((1, (80, 100, 90)), (8, (80, 70, 40)))
    sweep = _rows(
        *((c, "", k, c * f) for c, own in speeds for k, f in zip((1, 3, 5), own, strict=True))
    )
    found = _decide(sweep, prices=Prices(FREE, FREE))
    assert found.relative
    assert [length for *_, length in found.schedule.ranges][::2] != [None]
    assert any("the baseline is draft_length 3" in note for note in found.notes)
    assert not found.is_option(0) and not found.break_even
    with pytest.raises(InvalidInput, match="robust"):
        _decide(sweep, robust=True)


def test_contexts_that_disagree_are_named() -> None:
    """Tests that a length that pays at one context and not at another is said to, and not where
    both agree.
    """

    def sweep(long: float) -> Sweep:
        return Sweep(
            tuple(
                Measurement(Point(Condition(256, "", context), k), speed)
                for context, fast in ((400, 79.0), (4000, long))
                for k, speed in ((None, 100.0), (3, fast))
            )
        )

    (note,) = [
        note for note in _decide(sweep(110.0)).notes if "best choice depends on them" in note
    ]
    assert "0.79x" in note and "1.10x" in note and "--context" in note
    assert not any("depends on them" in note for note in _decide(sweep(85.0)).notes)


def test_between_measured_contexts_seconds_are_linear() -> None:
    """Tests that a context between two measured ones has a mean of their seconds per token, and
    counts as predicted.
    """
    sweep = Sweep(
        tuple(
            Measurement(Point(Condition(4, "", context), k), speed)
            for context, none, fast in ((1000, 300.0, 500.0), (9000, 200.0, 190.0))
            for k, speed in ((None, none), (3, fast))
        )
    )
    grid = _decide(sweep, context_tokens=3000).grid
    assert grid.mean[0, 0] == pytest.approx(1 / (0.75 / 300 + 0.25 / 200))
    assert grid.mean[0, 4] == pytest.approx(1 / (0.75 / 500 + 0.25 / 190))
    assert not grid.measured.any()
    assert _decide(sweep, context_tokens=9000).grid.measured[0, 4]


def test_drafts_shorter_than_measured_are_asked_for_but_not_taken() -> None:
    """Tests that they are predicted between no speculation and what was measured, and only taken
    with leave.
    """
    sweep = _rows((8, "", None, 100.0), (8, "", 5, 80.0), (8, "", 7, 70.0))
    found = _decide(sweep)
    row = found.grid.row(8)
    assert 78.0 < found.grid.mean[row, 2] < 130.0
    assert (
        found.grid.mean[row, 2] > found.grid.mean[row, 0]
    )  # by this number alone it would be taken
    assert found.schedule.ranges == ((1, 8, None),)
    assert found.regret_bound > 0.1
    assert _decide(sweep, extrapolate=True).schedule.ranges == (
        (1, 8, None),
    )  # at the lower end of its band


def test_a_percentile_of_several_workloads_is_the_worst_of_them() -> None:
    """Tests that a target of the 99th percentile is met where every workload meets it, not their
    mean.
    """
    rows = [
        Measurement(
            Point(Condition(4, name), k), 400.0, also={"p99_tpot_ms": tail, "mean_tpot_ms": 10.0}
        )
        for name, tail in (("chat", 12.0), ("code", 20.0))
        for k in (None, 3)
    ]
    for target, carried in ((0.019, 0), (0.021, 4)):
        found = _decide(Sweep(tuple(rows)), tpot_seconds=target, tpot_of="p99")
        assert [one.concurrency for one in found.capacity] == [carried] * len(found.capacity)
