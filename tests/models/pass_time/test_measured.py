"""Tables of measured passes: interpolation, monotonicity, limits, the engine's staircase,
refusals.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.passes import WHICH, at, made
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS
from specopt.models.pass_time import PassTime
from specopt.models.pass_time.monotone import isotonic, majorant, minorant

POINTS = list(product((1, 2, 4), (1, 2, 4, 8), (0, 100)))


def table_of(table: Any, **more: Any) -> PassTime:
    """Return the pass time of a table."""
    return made({"table": table, **more})


def columns(seconds: Any, points: Any = POINTS, **more: Any) -> dict[str, Any]:
    """Return a table in columns."""
    batch, new, cached = (list(column) for column in zip(*points, strict=True))
    return {
        "batch": batch,
        "new_tokens": new,
        "cached_tokens": cached,
        "seconds": list(seconds),
        **more,
    }


def smooth(batch: float, new: float, cached: float) -> float:
    """Return the time of a pass that is linear in each of its three sizes."""
    return 0.01 + 1e-3 * batch * new + 1e-5 * batch * cached


def test_points_are_met_and_lines_between_them() -> None:
    """Tests that monotone times are met at the points, and that what is linear is met between and
    beyond them.
    """
    time = table_of(columns(smooth(*point) for point in POINTS))
    for batch, new, cached in [
        *POINTS,
        (3, 3, 50),
        (1, 7, 0),
        (4, 1.5, 99),
        (8, 16, 200),
        (8, 1, 0),
    ]:
        assert at(time, batch, new, cached) == pytest.approx(smooth(batch, new, cached), rel=1e-9)
        assert at(time, batch, new, cached, "upper") >= smooth(batch, new, cached) * (1 - 1e-9)
    assert time.measured == "batches 1-4, new tokens 1-8, cached tokens 0-100"
    assert time.contexts == (0.0, 100.0)
    sizes = (
        np.array([1.0, 4.0, 5.0, 1.0, 1.0]),
        np.array([1.0, 8.0, 1.0, 9.0, 1.0]),
        np.array([0, 100, 0, 0, 101.0]),
    )
    assert time.covers(*sizes).tolist() == [True, True, False, False, False]


times = st.lists(st.floats(1e-3, 1.0), min_size=len(POINTS), max_size=len(POINTS))


@settings(max_examples=25)
@given(times, st.lists(st.floats(0.0, 0.1), min_size=len(POINTS), max_size=len(POINTS)))
def test_more_work_never_takes_less(seconds: list[float], spread: list[float]) -> None:
    """Tests that the interpolation and its limits rise with each size, whatever was measured, and
    hold all of it.
    """
    time = table_of(columns(seconds, spread=spread))
    axes = np.array([1, 1.5, 2, 3, 4]), np.array([1, 2, 3, 4, 6, 8.0]), np.array([0, 60, 100.0])
    batch, new, cached = np.meshgrid(*axes, indexing="ij")
    low, mid, high = (time.seconds(batch, new, cached, which) for which in WHICH)
    for axis in range(3):
        assert (np.diff(mid, axis=axis) >= -1e-12).all()
    assert (low <= mid * (1 + 1e-12)).all()
    assert (mid <= high * (1 + 1e-12)).all()
    for point, measured, apart in zip(POINTS, seconds, spread, strict=True):
        assert at(time, *point, "lower") <= measured * (1 + 1e-9)
        assert at(time, *point, "upper") >= (measured + apart) * (1 - 1e-9)


@settings(max_examples=25)
@given(times)
def test_isotonic_regression_is_the_nearest(seconds: list[float]) -> None:
    """Tests that the isotonic fit is optimal, and which monotone functions are tightest on both
    sides.

    The residuals of a projection on a cone are orthogonal to it, and at an obtuse angle to all else
    in the cone.
    """
    values = np.log(seconds).reshape(3, 4, 2)
    fit = isotonic(values)
    residual = values - fit
    assert float((residual * fit).sum()) == pytest.approx(0.0, abs=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = majorant(rng.normal(size=values.shape))
        assert float((residual * other).sum()) <= 1e-6
    for axis in range(3):
        assert (np.diff(fit, axis=axis) >= 0.0).all()
    assert (minorant(values) <= fit + 1e-9).all()
    assert (fit <= majorant(values) + 1e-9).all()


def test_between_points_limits_hold_what_may_be_there() -> None:
    """Tests that limits between points are as wide as the step that was left out, and no wider than
    the neighbours.
    """
    steps = [
        0.01,
        0.02,
        0.02,
        0.02,
    ]  # a jump from 1 to 2 new tokens, which a line from 1 to 4 misses
    points = [(1, new, 0) for new in (1, 2, 4, 8)]
    time = table_of(columns(steps, points))
    guess = 0.01 + 0.01 / 3
    assert at(time, 1, 1.5, which="lower") == pytest.approx(max(0.01, 0.015 * guess / 0.02))
    assert at(time, 1, 1.5, which="upper") == pytest.approx(0.02)
    assert [at(time, 1, 3, which=which) for which in WHICH] == pytest.approx([0.02] * 3)
    two = table_of(columns([0.01, 0.03], [(1, 1, 0), (1, 2, 0)]))
    assert [at(two, 1, 1.5, which=which) for which in WHICH] == pytest.approx([0.01, 0.02, 0.03])


def test_repeats_and_falling_times_are_in_the_limits() -> None:
    """Tests that equal points are repeats, and that times which fall with the work are told and
    held.
    """
    time = table_of(columns([0.03, 0.05, 0.02, 0.02], [(1, 1, 0), (1, 1, 0), (2, 1, 0), (4, 1, 0)]))
    assert [at(time, 1, 1, which=which) for which in ("lower", "upper")] == pytest.approx(
        [0.02, 0.05]
    )
    assert at(time, 4, 1) == pytest.approx(at(time, 1, 1))
    assert "decrease as the work increases" in time.notes[0]


def test_the_staircase() -> None:
    """Tests that a batch runs as the next captured size, and what follows beyond the largest."""
    points = [(batch, 1, 0) for batch in (1, 2, 4, 8, 16)]
    seconds = [0.01, 0.011, 0.013, 0.1, 0.12]
    time = table_of(columns(seconds, points), captured_batches=[1, 2, 4])
    found = [at(time, batch, 1) for batch in (1, 2, 3, 4, 5, 8, 12, 16)]
    assert found == pytest.approx([0.01, 0.011, 0.013, 0.013, 0.1, 0.1, 0.11, 0.12])
    sizes = np.array([3.0, 5.0, 16.0, 17.0])
    assert time.covers(sizes, np.array(1.0), np.array(0.0)).tolist() == [True, True, True, False]
    jump = table_of(columns(seconds[:3], points[:3]), captured_batches=[1, 2, 4], beyond=5.0)
    assert [at(jump, batch, 1) for batch in (4, 6)] == pytest.approx([0.013, 5 * 0.015])
    assert at(
        table_of(columns(seconds[:3], points[:3]), captured_batches=[1, 2, 4]), 6, 1
    ) == pytest.approx(0.015)
    assert not jump.covers(np.array(5.0), np.array(1.0), np.array(0.0))
    line = {
        "seconds_per_token": 1e-3,
        "overhead_seconds": 0.0,
        "captured_batches": [8, 16],
        "beyond": 3.0,
    }
    form = made(line)
    assert [at(form, batch, 1) for batch in (1, 9, 20)] == pytest.approx([8e-3, 16e-3, 60e-3])
    mean = made(line | {"captured_batches": [1], "beyond": 9e5})
    assert at(mean, 1.5, 1) == pytest.approx(1350.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": [1, 2]}, "file.table.new_tokens: expected 2 entries, as in batch, got 24"),
        ({"seconds": [0.0] * 24}, r"file.table.seconds\[0\]: expected float > 0.0"),
        ({"spread": [-1.0] * 24}, r"file.table.spread\[0\]: expected float >= 0.0"),
        (
            {"batch": [1] * 23 + [3]},
            "file.table: expected a complete grid with one row .* missing, the first at batch = ",
        ),
        ({"secs": []}, "file.table.secs: unknown field"),
    ],
)
def test_bad_tables_are_named(change: dict[str, Any], message: str) -> None:
    """Tests that each unusable table is refused with its place."""
    with pytest.raises(InvalidInput, match=message):
        table_of(columns([0.1] * len(POINTS)) | change)


def test_bad_staircases_are_named() -> None:
    """Tests that a table with batches beyond the captured takes no factor, and is refused with them
    alone.
    """
    table = columns([0.1] * len(POINTS))
    with pytest.raises(InvalidInput, match=r"file.beyond: omit this factor"):
        table_of(table, captured_batches=[1, 2], beyond=2.0)
    with pytest.raises(InvalidInput, match="file: unknown field 'captured'"):
        table_of(table, captured=[1, 2])
    with pytest.raises(InvalidInput, match=r"file.beyond: expected a number"):
        table_of(columns([0.1, 0.2], [(1, 1, 0), (2, 1, 0)]), captured_batches=[1, 2], beyond=1e6)
    larger = columns([0.1, 0.2], [(8, 1, 0), (16, 1, 0)])
    with pytest.raises(
        InvalidInput,
        match=r"file.captured_batches: the table contains no passes with captured batch sizes",
    ):
        table_of(larger, captured_batches=[1, 2])
    for sizes in ([1, 2, 2], [2, 1], [0, 1], [1, MAX_TOKENS + 1], [], [True, 2], (1, 2), [1.0]):
        with pytest.raises(
            InvalidInput, match=r"file.captured_batches: expected increasing integers >= 1"
        ):
            table_of(table, captured_batches=sizes)
