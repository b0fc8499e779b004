"""The speculation table: goodput by hand, every length tried, limits, the worst case, measured
tables.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.acceptance_lengths import AcceptanceLengths
from specopt.models.errors import InvalidInput
from specopt.models.position_acceptance import PositionAcceptance
from specopt.solvers.speculation_table.runtimes import Runtimes
from specopt.solvers.speculation_table.table import SpeculationTable, speculation_table

FLOOR = {"seconds_per_token": 0.0, "overhead_seconds": 0.03}
VERIFY = {"pieces": [FLOOR, {"seconds_per_token": 2e-4, "overhead_seconds": 0.01}]}
DRAFT = {"seconds_per_token": 2e-5, "overhead_seconds": 0.002}
BOTH = {"draft": DRAFT, "verify": VERIFY}
RUNTIMES = Runtimes.from_dict({**BOTH, "zero_draft_cost": 0.1})


def by_hand(rates: list[float], batch: int, drafts: int) -> float:
    """Return tokens per second of a batch, from the definitions."""
    tokens, product = 1.0, 1.0
    for rate in rates[:drafts]:
        product *= rate
        tokens += product
    verify = max(0.03, 2e-4 * batch * (1 + drafts) + 0.01)
    return batch * tokens / (drafts * (2e-5 * batch + 0.002) + verify) * (1.0 if drafts else 0.9)


def alone_by_hand(batch: int) -> float:
    """Return tokens per second of a batch in an engine that does not speculate."""
    return by_hand([], batch, 0) / 0.9


def choice(table: SpeculationTable, batch: int) -> int | None:
    """Return the drafts at a batch size."""
    return next(k for low, high, k in table.ranges if low <= batch <= high)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.integers(1, 200))
def test_every_size_gets_its_best_length(rates: list[float], batch: int) -> None:
    """Tests that without a loss allowed no other length is better at any batch size, if speculation
    pays at all.
    """
    table = speculation_table(RUNTIMES, PositionAcceptance.exactly(rates), max_batch=200, loss=0.0)
    best = [max(by_hand(rates, size, k) for k in range(len(rates) + 1)) for size in range(1, 201)]
    found = choice(table, batch)
    if found is None:
        mean = np.mean(
            [np.log(value / alone_by_hand(size)) for size, value in enumerate(best, start=1)]
        )
        assert mean <= 1e-12
        assert "speculation does not pay" in table.notes[-1]
    else:
        assert by_hand(rates, batch, found) == pytest.approx(best[batch - 1], rel=1e-9)


def test_ranges_cover_and_speculation_ends() -> None:
    """Tests that ranges run from 1 to the largest batch, drafts fall, and large batches do not
    speculate.
    """
    table = speculation_table(
        RUNTIMES, PositionAcceptance.constant(0.7), max_batch=384, max_length=7
    )
    lows = [low for low, _, _ in table.ranges]
    assert lows == [1, *(high + 1 for _, high, _ in table.ranges[:-1])]
    assert table.ranges[-1][1:] == (384, 0)
    drafts = [k for *_, k in table.ranges if k is not None]
    assert len(drafts) == len(table.ranges)
    assert drafts == sorted(drafts, reverse=True)
    assert max(table.loss) <= 0.01 + 1e-12
    assert table.speedup[-1] == pytest.approx(0.9)
    assert table.speedup_limits is None


def test_speedup_is_the_mean_over_the_range() -> None:
    """Tests that the reported speed-up is the mean by the definitions."""
    rates = [0.8, 0.7, 0.6]
    table = speculation_table(RUNTIMES, PositionAcceptance.exactly(rates), max_batch=64)
    for (low, high, k), speedup in zip(table.ranges, table.speedup, strict=True):
        assert k is not None
        ratios = [by_hand(rates, b, k) / alone_by_hand(b) for b in range(low, high + 1)]
        assert speedup == pytest.approx(np.mean(ratios), rel=1e-12)


def test_limits_enclose_and_shrink_with_counts() -> None:
    """Tests that speed-ups lie within their limits, and more counts bring these closer."""
    width = []
    for n in (100.0, 10_000.0):
        known = PositionAcceptance.from_counts([n, 0.8 * n], [0.8 * n, 0.5 * n])
        table = speculation_table(RUNTIMES, known, max_batch=32)
        assert table.speedup_limits is not None
        for speedup, (low, high) in zip(table.speedup, table.speedup_limits, strict=True):
            assert low <= speedup <= high
        width.append(table.speedup_limits[0][1] - table.speedup_limits[0][0])
    assert width[1] < 0.2 * width[0]


def test_limits_hold_where_slope_and_overhead_vary_apart() -> None:
    """Tests that speed-ups lie within the limits wherever the coefficients do within theirs: here
    one is low, one high.

    Verification is cheap alone and dear with drafts where its overhead is low and its slope high.
    """
    lower = {"seconds_per_token": 0.5e-4, "overhead_seconds": 0.02}
    upper = {"seconds_per_token": 1e-3, "overhead_seconds": 0.06}
    fitted = {"seconds_per_token": 2e-4, "overhead_seconds": 0.03}
    data = {"draft": DRAFT, "verify": {"runtime": fitted, "lower": lower, "upper": upper}}
    known = PositionAcceptance.exactly([0.8, 0.7, 0.6])
    table = speculation_table(Runtimes.from_dict(data), known, max_batch=16, loss=0.5)
    assert len(table.ranges) == 1
    assert table.speedup_limits is not None
    low, high = table.speedup_limits[0]
    for slope, overhead in ((lower, lower), (lower, upper), (upper, lower), (upper, upper)):
        verify = {
            "seconds_per_token": slope["seconds_per_token"],
            "overhead_seconds": overhead["overhead_seconds"],
        }
        alone, speculating = Runtimes.from_dict({"draft": DRAFT, "verify": verify}).seconds(16, 3)
        mean = float(
            (known.expected_tokens(3) * alone / speculating)[0, :, table.ranges[0][2]].mean()
        )
        assert low - 1e-12 <= mean <= high + 1e-12


def test_limits_at_zero_seconds_are_left_out() -> None:
    """Tests that a lower limit of no time at all leaves the limits of the speed-up finite."""
    none = {"seconds_per_token": 0.0, "overhead_seconds": 0.0}
    times = {name: {"runtime": DRAFT, "lower": none} for name in ("draft", "verify")}
    table = speculation_table(
        Runtimes.from_dict(times), PositionAcceptance.constant(0.8), max_batch=8
    )
    assert table.speedup_limits is not None
    assert np.isfinite(table.speedup_limits).all()


def test_seconds_per_flop_without_a_model_are_noted() -> None:
    """Tests that nothing is guessed in silence: seconds_per_flop that can only be meant per token
    are said to be.
    """
    times = {"draft": DRAFT, "verify": {"seconds_per_flop": 1e-4, "overhead_seconds": 0.03}}
    table = speculation_table(
        Runtimes.from_dict(times), PositionAcceptance.constant(0.8), max_batch=8
    )
    assert [note for note in table.notes if "is applied per token" in note] == [table.notes[0]]
    assert table.notes[0].startswith("verify: seconds_per_flop")


def test_worst_case_is_best_there() -> None:
    """Tests that the robust lengths have the best worst speed-up, here with low acceptance and slow
    drafts.
    """
    low, upper = 0.5, {"seconds_per_token": 4e-5, "overhead_seconds": 0.004}
    limits = {"runtime": DRAFT, "lower": DRAFT, "upper": upper}
    known = PositionAcceptance.constant(0.8, low, 0.9)
    runtimes = Runtimes.from_dict({"draft": limits, "verify": VERIFY})
    robust = speculation_table(runtimes, known, max_batch=48, max_length=5, robust=True)
    worst = Runtimes.from_dict({"draft": upper, "verify": VERIFY})
    alone = speculation_table(worst, PositionAcceptance.constant(low), max_batch=48, max_length=5)
    assert robust.ranges == alone.ranges
    assert speculation_table(runtimes, known, max_batch=48, max_length=5).ranges != robust.ranges


@given(st.floats(0.1, 0.9), st.floats(0.0, 0.3), st.floats(1.0, 4.0), st.floats(1.0, 4.0))
def test_robust_lengths_are_never_slower(
    rate: float, down: float, draft: float, verify: float
) -> None:
    """Tests that what is taken for the worst case is at least as fast as no speculation in every
    case.
    """
    slow_draft = {name: draft * value for name, value in DRAFT.items()}
    slow_verify = {
        "pieces": [
            {name: verify * value for name, value in piece.items()} for piece in VERIFY["pieces"]
        ]
    }
    runtimes = Runtimes.from_dict(
        {
            "draft": {"runtime": DRAFT, "lower": DRAFT, "upper": slow_draft},
            "verify": {"runtime": VERIFY, "lower": VERIFY, "upper": slow_verify},
        }
    )
    known = PositionAcceptance.constant(rate, max(0.0, rate - down), rate)
    table = speculation_table(runtimes, known, max_batch=64, max_length=4, loss=0.0, robust=True)
    assert table.speedup_limits is not None
    assert all(low >= 1.0 for low, _ in table.speedup_limits)
    assert all(drafts != 0 for *_, drafts in table.ranges)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"runtime: expected an object with draft and verify"),
        ({"draft": DRAFT}, "runtime.verify: required field is missing"),
        ({**BOTH, "drafts": 1}, "unknown field 'drafts'"),
        (
            {**BOTH, "context_tokens": 1.5},
            "context_tokens: expected an integer >= 0",
        ),
        (
            {**BOTH, "step_overhead_seconds": -1},
            "step_overhead_seconds: expected a number",
        ),
        (
            {**BOTH, "step_overhead_seconds": 10**400},
            "step_overhead_seconds: expected a num",
        ),
        ({"draft": 3, "verify": VERIFY}, "runtime.draft: expected a runtime, got 3"),
        (
            {**BOTH, "zero_draft_cost": 1},
            "zero_draft_cost: expected a number in",
        ),
        (
            {**BOTH, "zero_draft_cost": [0.3, 0.2]},
            "zero_draft_cost: expected a number in",
        ),
    ],
)
def test_bad_runtimes_are_named(data: object, message: str) -> None:
    """Tests that each unusable file is refused with its place."""
    with pytest.raises(InvalidInput, match=message):
        Runtimes.from_dict(data)


def test_bad_arguments_are_named() -> None:
    """Tests that sizes outside their domain and passes without time are refused, and unknown
    positions noted.
    """
    rates = PositionAcceptance.exactly([0.5, 0.5])
    with pytest.raises(InvalidInput, match="max_batch: expected an integer from 1"):
        speculation_table(RUNTIMES, rates, max_batch=0)
    with pytest.raises(InvalidInput, match="max_length: expected an integer from 1"):
        speculation_table(RUNTIMES, rates, max_length=0)
    free = {"seconds_per_token": 0.0, "overhead_seconds": 0.0}
    with pytest.raises(InvalidInput, match="a step of 0 seconds"):
        speculation_table(Runtimes.from_dict({"draft": free, "verify": free}), rates)
    table = speculation_table(RUNTIMES, rates, max_length=5)
    assert table.most_drafts == 2
    assert "known for 2 draft positions" in table.notes[0]
    assert "no" not in speculation_table(RUNTIMES, rates).notes


def test_acceptance_by_length_chooses_among_what_was_measured() -> None:
    """Tests that a length whose acceptance falls is not taken, and that one that was not measured
    is refused.
    """
    falling = AcceptanceLengths.exactly({1: 1.8, 2: 2.4, 3: 2.3})
    table = speculation_table(RUNTIMES, falling, max_batch=8)
    assert table.most_drafts == 3
    assert {drafts for *_, drafts in table.ranges} == {2}
    assert any("acceptance depends on the draft length" in note for note in table.notes)
    with pytest.raises(InvalidInput, match="drafts of 1 were not; allow extrapolation"):
        speculation_table(RUNTIMES, AcceptanceLengths.exactly({3: 2.3}), max_batch=8)
