"""The number of clients that machines serve, from sweeps that follow known laws."""

from __future__ import annotations

import numpy as np
import pytest

from specopt.models.errors import InvalidInput
from specopt.models.sweep import Condition, Measurement, Point, Sweep
from testbed.studies.carried import carried, last_at, repeated


def sweep(concurrencies: tuple[int, ...], power: float) -> Sweep:
    """Return a sweep whose throughput is a power of the load."""
    return Sweep(
        tuple(
            Measurement(
                Point(Condition(count), length), 100.0 * (1.0 + 0.1 * length) * count**power
            )
            for count in concurrencies
            for length in (1, 2, 3)
        )
    )


def test_a_power_law_is_found_again() -> None:
    """Tests that each withheld concurrency is recovered and counted for a law that the prediction
    can represent.
    """
    found = carried(sweep((1, 2, 4, 8, 16), 0.6))
    assert len(found) == 15
    assert np.median([abs(one.error) for one in found]) < 0.01
    assert np.median([abs(one.rate_error) for one in found]) < 0.01
    assert {one.point.condition.concurrency for one in found} == {1, 2, 4, 8, 16}


def test_the_withheld_concurrency_is_not_seen() -> None:
    """Tests that a measurement that deviates from the law of the others is reported as an error of
    the same size.
    """
    law = sweep((1, 2, 4, 8, 16), 0.5)
    odd = Sweep(
        tuple(
            Measurement(
                one.point,
                one.tokens_per_second * (1.2 if one.point.condition.concurrency == 4 else 1.0),
            )
            for one in law.measurements
            if one.tokens_per_second
        )
    )
    (error,) = {
        round(one.rate_error, 2) for one in carried(odd) if one.point.condition.concurrency == 4
    }
    assert error == pytest.approx(1 / 1.2 - 1, abs=0.02)


def test_repetitions_tell_what_nothing_withheld_is_off_by() -> None:
    """Tests that a second run that is slower by a factor gives an error in the number of clients
    according to the slope of the law, between the ends.
    """
    law = sweep((1, 2, 4, 8), 0.5)
    assert repeated(law) == []
    again = [
        Measurement(one.point, 0.9 * one.tokens_per_second)
        for one in law.measurements
        if one.tokens_per_second
    ]
    assert repeated(Sweep((*law.measurements, *again))) == pytest.approx([0.9**-2 - 1.0] * 6)


def test_too_few_concurrencies_are_refused() -> None:
    """Tests that three concurrencies are rejected as too few."""
    with pytest.raises(InvalidInput, match="4 concurrencies or more, got 3"):
        carried(sweep((1, 4, 8), 0.5))


def test_ends_are_the_counts_looked_at() -> None:
    """Tests that a rate that all counts reach gives infinitely many clients, and one that none
    reaches gives none.
    """
    clients, rates = np.array([1, 2, 4]), np.array([8.0, 4.0, 1.0])
    assert last_at(clients, rates, 0.5) == np.inf
    assert last_at(clients, rates, 9.0) == 0.0
    assert last_at(clients, rates, 4.0) == 2.0
