"""What one unit yields to like clients, against a count of all numbers of clients."""

from __future__ import annotations

import dataclasses
from unittest.mock import Mock

import numpy as np
import pytest

from specopt import generate
from specopt.instances.placement.one_unit import (
    SIZES,
    Figure,
    MeasuredPieces,
    best_length,
    everywhere,
    places_of,
)
from specopt.models.pass_time import PassTime
from specopt.models.placement.problem import PlacementProblem


def one_class(least: float, most: int = 3) -> PlacementProblem:
    """One class of clients that get a least rate, with short drafts."""
    problem = generate("placement/one-class", seed=1)
    assert isinstance(problem, PlacementProblem)
    classes = tuple(
        dataclasses.replace(
            one,
            min_tokens_per_second=least,
            acceptance=type(one.acceptance)(
                {name: np.array(0.7) for name in one.acceptance.values}
            ),
        )
        for one in problem.classes
    )
    return dataclasses.replace(
        problem,
        classes=classes,
        max_draft_tokens=most,
        objective="capacity" if least else "goodput",
        draft_pools=(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("least", [30.0, 45.0])
def test_as_many_clients_as_any_number_that_is_served(least: float) -> None:
    """Tests that a place carries the largest number of clients that the judge serves, with the best
    draft length, although rates are not monotone in their number.
    """
    problem = one_class(least)
    for place in places_of(problem):
        lengths = (0,) if place == "none" else (1, 2, 3)
        served = [
            count
            for tokens in lengths
            for overlap in ((False, True) if place == "device" else (False,))
            for count in range(1, 900, 3)
            if problem.serves(everywhere(problem, Figure(place, 0.0, tokens, overlap), count))
        ]
        found = best_length(problem, place)
        assert found.value >= max(served, default=0)
        if found.value:
            assert problem.serves(everywhere(problem, found, int(found.value)))
        assert best_length(problem, place, found.value).value == 0.0
        assert best_length(problem, place, found.value - 1.0).value == found.value


def test_the_most_tokens_without_a_least_rate() -> None:
    """Tests that without a least rate a place has the rate of the best length with all clients."""
    problem = one_class(0.0)
    (of,) = problem.classes
    for place in places_of(problem):
        found = best_length(problem, place)
        plan = everywhere(problem, found, of.clients)
        rates = problem.evaluate(plan).terms["classes"][of.name]
        assert found.value == pytest.approx(rates[0]["tokens_per_second"])


def test_clients_are_spread_evenly() -> None:
    """Tests that units of a plan for all differ by one client at most."""
    plan = everywhere(one_class(20.0), Figure("none", 0.0), 31, 4)
    assert [(group.units, group.clients[0].per_unit) for group in plan.groups] == [(3, 8), (1, 7)]


def test_measured_passes_are_looked_up() -> None:
    """Tests that a pass takes the measured seconds at its tokens per sequence, linear between
    batches, and that they are asked for once.
    """
    times = Mock(spec=PassTime)
    times.covers.return_value = True
    times.seconds.side_effect = lambda batch, new, cached, _: (
        0.01 * np.ceil(batch / 4.0) + 0.001 * new + 1e-6 * cached
    )
    passes = MeasuredPieces(np.zeros((1, 4)), times, "fitted")
    assert passes.at(4, 12, 400) == pytest.approx(0.01 + 0.003 + 1e-4)
    assert passes.at(4.5, 13.5, 450) == pytest.approx(0.015 + 0.003 + 1e-4)
    times.seconds.assert_called_once()
    assert SIZES[0] == 1.0
