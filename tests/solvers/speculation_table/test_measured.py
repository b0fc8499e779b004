"""Speculation tables from measured passes: contexts, the measured range, and never slower than no
speculation.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from specopt.models.position_acceptance import PositionAcceptance
from specopt.solvers.speculation_table.runtimes import Runtimes
from specopt.solvers.speculation_table.table import SpeculationTable, speculation_table

BATCHES, NEW, CONTEXTS = (1, 2, 4), (1, 2, 4), (0, 200)
Times = dict[tuple[int, int, int], float]


def table_of(times: Times, spread: Times | None = None) -> dict[str, Any]:
    """Return measured passes as a runtime."""
    batch, new, cached = (list(column) for column in zip(*times, strict=True))
    columns: dict[str, Any] = {"batch": batch, "new_tokens": new, "cached_tokens": cached}
    columns["seconds"] = list(times.values())
    if spread is not None:
        columns["spread"] = [spread[point] for point in times]
    return {"table": columns}


def shipped(column: str = "seconds_median") -> dict[str, Times]:
    """Return the measured pair that comes with the package, by part."""
    found: dict[str, Times] = {"draft": {}, "verify": {}}
    with (files("specopt.instances") / "data" / "measured" / "cpu-pair.csv").open() as stream:
        for row in csv.DictReader(stream):
            point = (int(row["batch"]), int(row["new_tokens"]), int(row["cached_tokens"]))
            found[row["model"].partition("-")[0]][point] = float(row[column])
    return found


def measured_speedup(
    draft: Times, verify: Times, rate: float, batch: int, drafts: int, context: int
) -> float:
    """Return what the measured times themselves say of a batch's speed-up."""
    tokens = sum(rate**power for power in range(drafts + 1))
    step = drafts * draft[batch, 1, context] + verify[batch, 1 + drafts, context]
    return tokens * verify[batch, 1, context] / step


def assert_never_slower(found: SpeculationTable, draft: Times, verify: Times, rate: float) -> None:
    """Assert that no measured point contradicts a robust table."""
    for low, high, drafts in found.ranges:
        assert drafts != 0  # slower than no speculation at any batch size
        for batch, new, context in verify:
            if (
                drafts is not None
                and low <= batch <= high
                and new == 1 + drafts
                and (batch, 1, context) in draft
            ):
                assert measured_speedup(draft, verify, rate, batch, drafts, context) >= 1.0


grid = list(product(BATCHES, NEW, CONTEXTS))
some_times = st.lists(st.floats(0.01, 0.03), min_size=len(grid), max_size=len(grid))


@settings(max_examples=40, deadline=None)
@given(some_times, some_times, st.floats(0.05, 0.6), st.floats(0.3, 1.0), st.integers(1, 4))
def test_robust_is_never_slower_on_random_tables(
    draft: list[float], verify: list[float], share: float, rate: float, most: int
) -> None:
    """Tests that whatever was measured, up to the largest batch nothing is slower on a measured
    point.
    """
    drafts = {point: share * value for point, value in zip(grid, draft, strict=True)}
    verifies = dict(zip(grid, verify, strict=True))
    runtimes = Runtimes.from_dict({"draft": table_of(drafts), "verify": table_of(verifies)})
    rates = PositionAcceptance.constant(rate)
    assert_never_slower(
        speculation_table(runtimes, rates, max_batch=most, robust=True), drafts, verifies, rate
    )


def test_robust_speculates_where_it_pays() -> None:
    """Tests that the promise is not kept by never speculating: cheap drafts of steady tables are
    taken.
    """
    drafts = dict.fromkeys(grid, 0.0001)
    verifies = {(batch, new, context): 0.02 + 1e-4 * batch * new for batch, new, context in grid}
    runtimes = Runtimes.from_dict({"draft": table_of(drafts), "verify": table_of(verifies)})
    found = speculation_table(runtimes, PositionAcceptance.constant(0.7), robust=True)
    assert [drafts for *_, drafts in found.ranges] == [3]
    assert found.speedup_limits is not None
    assert found.speedup_limits[0][0] > 1.5


@pytest.mark.parametrize("rate", [0.6, 0.8, 0.95])
def test_robust_is_never_slower_on_the_shipped_table(rate: float) -> None:
    """Tests that the measured pair gets no lengths that its medians say are slower: at 0.6 none,
    and why with what.
    """
    medians, tails = shipped(), shipped("seconds_p90")
    spread = {
        part: {point: tails[part][point] - of[point] for point in of}
        for part, of in medians.items()
    }
    data = {part: table_of(of, spread[part]) for part, of in medians.items()}
    for most in (1, 2, 4):
        found = speculation_table(
            Runtimes.from_dict(data), PositionAcceptance.constant(rate), max_batch=most, robust=True
        )
        assert_never_slower(found, medians["draft"], medians["verify"], rate)
        if rate == 0.6:
            assert found.ranges == ((1, most, None),)
            assert "no draft length is safe: at batch size 1" in found.notes[-1]
    # what the table's own medians say of one draft at batch 1
    assert measured_speedup(medians["draft"], medians["verify"], 0.6, 1, 1, 128) == pytest.approx(
        0.74, abs=0.005
    )


def test_nothing_is_extrapolated_unasked() -> None:
    """Tests that sizes default to what was measured, and that beyond it the refusal names the
    range.
    """
    verifies = {(batch, new, 128): 0.02 + 1e-4 * batch * new for batch, new, _ in grid}
    data = {"draft": table_of(dict.fromkeys(verifies, 0.0001)), "verify": table_of(verifies)}
    runtimes, rates = Runtimes.from_dict(data), PositionAcceptance.constant(0.7)
    found = speculation_table(runtimes, rates)
    assert (found.ranges[-1][1], found.most_drafts) == (4, 3)
    assert "the measured range (batches 1-4, new tokens 1-4, cached tokens 128" in found.notes[-1]
    for batch, length in ((5, None), (None, 4)):
        with pytest.raises(
            InvalidInput,
            match=r"\(batches 1-4, new tokens 1-4, .* to go beyond it, use --extrapolate",
        ):
            speculation_table(runtimes, rates, max_batch=batch, max_length=length)
    wide = speculation_table(runtimes, rates, max_batch=8, max_length=5, extrapolate=True)
    assert (wide.ranges[-1][1], wide.most_drafts) == (8, 5)
    assert "extrapolated beyond the measured range" in wide.notes[-1]
    with pytest.raises(InvalidInput, match="contexts of 0 tokens"):
        speculation_table(Runtimes.from_dict({**data, "context_tokens": 0}), rates)


def test_contexts_that_were_measured_count_alike() -> None:
    """Tests that without a context all measured ones count, and a context between them is
    interpolated.
    """
    verifies = {(batch, new, context): 0.02 + 1e-4 * context for batch, new, context in grid}
    data = {"draft": table_of(dict.fromkeys(grid, 0.001)), "verify": table_of(verifies)}
    assert Runtimes.from_dict(data).contexts == (0.0, 200.0)
    assert (
        "the measured contexts (0, 200 tokens) are weighted equally"
        in Runtimes.from_dict(data).notes[0]
    )
    alone, _ = Runtimes.from_dict({**data, "context_tokens": 50}).seconds(4, 3)
    assert alone == pytest.approx(np.full((1, 4, 1), 0.025))


MODEL = {
    "cost": "exact",
    "layers": 32,
    "hidden": 4096,
    "ffn": 11008,
    "heads": 32,
    "kv_heads": 32,
    "head_dim": 128,
    "gated": True,
    "vocabulary": 32000,
    "tied": False,
}
SMALL = MODEL | {"layers": 4, "hidden": 1024, "ffn": 2816, "heads": 8, "kv_heads": 8}


@pytest.mark.parametrize("reading", [{}, {"seconds_per_kv_byte": 5e-13}])
def test_longer_contexts_raise_the_best_length(reading: dict[str, float]) -> None:
    """Tests that for a pair that memory limits the best length does not fall, and does rise, with
    the context.
    """
    data = {
        "draft": {"seconds_per_flop": 4e-15, "overhead_seconds": 1e-3, **reading},
        "verify": {"seconds_per_flop": 4e-15, "overhead_seconds": 1e-2, **reading},
        "draft_model": SMALL,
        "verify_model": MODEL,
    }
    best = []
    for context in (0, 500, 2000, 8000, 32000):
        runtimes = Runtimes.from_dict({**data, "context_tokens": context})
        found = speculation_table(
            runtimes, PositionAcceptance.constant(0.7), max_batch=32, max_length=12, loss=0.0
        )
        best.append(
            [drafts or 0 for low, high, drafts in found.ranges for _ in range(low, high + 1)]
        )
    if reading:  # else operations count, with which the draft model's own reading grows as well
        assert (np.diff(best, axis=0) >= 0).all()
    assert (np.array(best[-1]) >= best[0]).all()
    assert sum(best[-1]) > sum(best[0])
