"""Tests of what is asked to be measured next."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.drawn_sweeps import CONCURRENCIES, drawn_table, sweep_of

from specopt.models.errors import InvalidInput
from specopt.models.sweep import Condition, Measurement, Point
from specopt.solvers.speculation_table.tuning.tuner import Tuner
from specopt.solvers.speculation_table.tuning.tuning import Tuning


def _replay(table: dict[Point, Measurement], most: int) -> tuple[Tuner, int]:
    tuner = Tuner(CONCURRENCIES, range(8), regret=0.02)
    for asked in range(most):
        points = tuner.ask()
        if not points:
            return tuner, asked
        found = table[points[0]]
        tuner.tell(points[0], found.tokens_per_second or 0.0, found.acceptance_length)
    return tuner, most


def _regret(table: dict[Point, Measurement], tuning: Tuning) -> float:
    """Return the largest share that the schedule loses against the best option, in truth."""
    lost = []
    for concurrency in CONCURRENCIES:
        row = {
            p.draft_length: m.tokens_per_second or 0.0
            for p, m in table.items()
            if p.condition.concurrency == concurrency
        }
        lost.append(1.0 - row[tuning.schedule.at(concurrency)] / max(row.values()))
    return max(lost)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [2, 9])
def test_asking_needs_fewer_points_than_a_full_grid(seed: int) -> None:
    """Tests that few points of a complete table give a schedule as good as the full grid's, within
    what was asked.
    """
    table = drawn_table(seed)
    tuner, asked = _replay(table, 63)
    assert asked <= 50
    full = Tuner.from_sweep(sweep_of(table)).result()
    assert _regret(table, tuner.result()) <= _regret(table, full) + 0.025
    assert tuner.result().regret_bound <= 0.02 or not tuner.ask()


def test_points_asked_together_differ() -> None:
    """Tests that a batch of questions asks no new point twice: those before count as answered."""
    tuner = Tuner.from_sweep(sweep_of(drawn_table(1), (None, 3)))
    known = {measurement.point for measurement in tuner.measurements}
    points = [point for point in tuner.ask(4) if point not in known]
    assert len(set(points)) == len(points) >= 2


def test_what_is_settled_is_not_asked() -> None:
    """Tests that nothing is asked once every other option is certainly worse."""
    tuner = Tuner([1, 8], [1, 2])
    for c in (1, 8):
        for option, speed in ((None, 1.0), (1, 2.0), (2, 1.2)):
            tuner.tell(Point(Condition(c), option), 100.0 * c * speed)
    assert tuner.ask(5) == []
    assert tuner.result().schedule.ranges == ((1, 8, 1),)


def test_a_near_tie_is_measured_again_but_not_for_ever() -> None:
    """Tests that two measured options within the noise are repeated at most three times each."""
    tuner = Tuner([4], [1, 2], regret=0.001)
    rng = np.random.default_rng(1)
    asked = 0
    while (points := tuner.ask()) and asked < 40:
        for point in points:
            speed = 1.0 if point.draft_length is None else 1.2
            tuner.tell(point, 400.0 * speed * float(np.exp(rng.normal(0.0, 0.01))))
            asked += 1
    assert 3 < asked <= 4 * 3


def test_nothing_is_asked_where_there_is_nothing_to_choose() -> None:
    """Tests that loads and draft lengths are required, and what comes first without any
    measurement.
    """
    with pytest.raises(InvalidInput, match="draft length >= 1"):
        Tuner([1], [0])
    first = Tuner([1, 16], [1, 3, 5]).ask(4)
    assert [(p.condition.concurrency, p.draft_length) for p in first] == [
        (1, None),
        (16, None),
        (1, 3),
        (16, 3),
    ]


@pytest.mark.parametrize(("regret", "asks"), [(0.05, False), (0.001, True)])
def test_asking_stops_at_the_regret_that_is_allowed(regret: float, asks: bool) -> None:
    """Tests that two options closer than the noise are asked again only where so small a loss
    matters.
    """
    tuner = Tuner([4], [1, 2], regret=regret)
    for option, speed in ((None, 100.0), (1, 150.0), (2, 149.0)):
        tuner.tell(Point(Condition(4), option), speed)
    assert 0.001 < tuner.result().regret_bound < 0.05
    assert bool(tuner.ask()) == asks
