"""Predicted and measured values: errors, orders and gains from points, by hand and by plain
loops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.comparison import (
    Point,
    binomial,
    bootstrap,
    gains_of,
    points_of,
    quantities,
    summarise,
)


def point(
    predicted: float, *repetitions: float, scene: int = 0, methods: tuple[str, ...] = ("a",)
) -> Point:
    """Return a point."""
    return Point(
        kind="k",
        pair="p",
        scene=scene,
        methods=methods,
        label="l",
        predicted=predicted,
        repetitions=repetitions,
    )


def test_errors_are_relative_to_the_median_of_the_repetitions() -> None:
    """Tests that a plan predicted 10 % too low has the error -0.1, independent of one disturbed
    repetition.
    """
    found = summarise([point(9.0, 10.0, 10.0, 50.0)])
    assert found.median_error.value == pytest.approx(0.1)
    assert found.bias.value == pytest.approx(-0.1)
    assert found.pairs == 0
    assert math.isnan(found.right_order.value)


def test_only_pairs_of_one_scene_that_are_apart_count() -> None:
    """Tests that three pairs of five plans differ by 5 %, with one of them in the wrong order."""
    points = [
        point(1.0, 2.0),
        point(1.04, 1.0),
        point(1.1, 3.0),
        point(1.2, 2.5, scene=1),
        point(2.0, 2.6, scene=1),
    ]
    found = summarise(points)
    assert found.pairs == 3  # 1.0 and 1.1, 1.04 and 1.1, 1.2 and 2.0
    assert found.right_order.value == 1.0
    swapped = summarise([*points[:3], point(1.2, 2.7, scene=1), points[4]])
    assert swapped.right_order.value == pytest.approx(2 / 3)


@settings(max_examples=10)  # each draws thousands of samples for intervals
@given(
    rows=st.lists(
        st.tuples(st.floats(0.5, 2.0), st.floats(0.5, 2.0), st.integers(0, 1)),
        min_size=2,
        max_size=8,
        unique=True,
    )
)
def test_share_of_right_orders_is_that_of_a_plain_loop(
    rows: list[tuple[float, float, int]],
) -> None:
    """Tests that pairs and their right orders are counted as by two nested loops."""
    right = told = 0
    for i, (p, m, s) in enumerate(rows):
        for q, n, t in rows[i + 1 :]:
            if s == t and abs(p - q) >= 0.05 * min(p, q):
                told += 1
                right += (p < q) == (m < n)
    found = summarise([point(p, m, scene=s) for p, m, s in rows])
    assert found.pairs == told
    assert (
        math.isnan(found.right_order.value)
        if told == 0
        else found.right_order.value == right / told
    )


def test_intervals_cover_what_they_should() -> None:
    """Tests that the interval of a mean over two scenes is that of the normal distribution, and
    that a seed reproduces it.
    """
    random = np.random.default_rng(0)
    values, scenes = random.normal(5.0, 1.0, size=400), np.repeat([0, 1], 200)
    found = bootstrap(lambda rows: float(values[rows].mean()), scenes, seed=1)
    assert found == bootstrap(lambda rows: float(values[rows].mean()), scenes, seed=1)
    half = 1.96 * values.std() / math.sqrt(400)
    assert found.low == pytest.approx(values.mean() - half, abs=0.02)
    assert found.high == pytest.approx(values.mean() + half, abs=0.02)


def test_gains_are_shares_of_the_rivals_seconds_or_rates() -> None:
    """Tests that 8 s instead of 10 s is a gain of 20 %, and so is 12 tokens/s instead of 10, with
    the range of all repetitions.
    """
    points = [point(9.0, 8.0, 8.5, methods=("ours",)), point(10.0, 10.0, methods=("x", "theirs"))]
    (gain,) = gains_of(points, "ours", "theirs")
    assert gain.predicted == pytest.approx(0.1)
    assert (gain.measured.value, gain.measured.low, gain.measured.high) == pytest.approx(
        (0.175, 0.15, 0.2)
    )
    (gain,) = gains_of(
        [point(12.0, 12.0, methods=("ours",)), points[1]], "ours", "theirs", smaller_is_better=False
    )
    assert (gain.predicted, gain.measured.value) == pytest.approx((0.2, 0.2))
    assert (
        gains_of([points[0], point(1.0, 1.0, scene=1, methods=("theirs",))], "ours", "theirs") == []
    )


def test_points_are_read_from_trials_that_were_played() -> None:
    """Tests that predictors and quantities of a record are found, and that trials without
    repetitions or predictions are omitted.
    """
    trial: dict[str, Any] = {
        "scene": 0,
        "label": "l",
        "methods": ["a"],
        "measured": [{"s": 2.0}, {"s": 4.0}],
    }
    record = {
        "kind": "k",
        "pair": "p",
        "trials": [
            {**trial, "predicted": {"model": {"s": 3.0}, "other": {"s": 2.5}}},
            {**trial, "predicted": {"model": {"s": 3.0}}, "measured": []},
            {**trial, "predicted": {"model": {"s": 6.0}}},
        ],
    }
    assert quantities(record) == [("model", "s"), ("other", "s")]
    assert [one.error for one in points_of(record, "model", "s")] == [0.0, 1.0]
    assert len(points_of(record, "other", "s")) == 1


def test_orders_have_the_exact_interval_at_least() -> None:
    """Tests that for three of three pairs in the right order the lower limit is 29 %, and that no
    pairs give NaN.
    """
    found = summarise([point(1.0, 1.0), point(2.0, 2.0), point(3.0, 3.0)])
    assert (found.right_order.value, found.right_order.high) == (1.0, 1.0)
    assert found.right_order.low == pytest.approx(0.025 ** (1 / 3))
    assert np.isnan(binomial(0, 0).value) and binomial(2, 4).value == 0.5


def test_pairs_that_repetitions_do_not_separate_are_counted_apart() -> None:
    """Tests that pairs with overlapping repetitions are not counted as separated, and that errors
    are reported by scene.
    """
    points = [
        point(1.0, 1.0, 3.0),
        point(2.0, 1.5, 1.7),
        point(3.0, 4.0, 4.0),
        point(1.0, 2.0, scene=1),
    ]
    found = summarise(points)
    assert (found.pairs, found.separated) == (3, 2)
    assert found.right_order.value == pytest.approx(2 / 3) and found.separated_order.value == 1.0
    assert found.scene_errors == (0.25, 0.5)
