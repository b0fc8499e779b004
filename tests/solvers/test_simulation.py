"""The loop over replications that all simulators share."""

from __future__ import annotations

import time

import numpy as np
import pytest

from specopt.models.errors import InvalidInput
from specopt.solvers.simulation import Estimate, Replications


@pytest.mark.parametrize("workers", [1, 3])
def test_all_replications_are_played_once(workers: int) -> None:
    """Tests that slices cover all replications, and that the callback gets the mean of those played
    so far.
    """
    samples, told = np.zeros(10), []

    def play(part: slice) -> None:
        samples[part] += 1.0 + np.arange(10)[part]

    runs = Replications(0, 10, lambda *seen: told.append(seen))
    found = runs.play(play, lambda done: {"place": samples[:done]}, at_once=4, workers=workers)
    assert samples.tolist() == list(range(1, 11))
    assert told == [(4, 2.5), (8, 4.5), (10, 5.5)]
    assert isinstance(found["place"], Estimate) and found["place"].mean == 5.5


def test_an_interval_is_students() -> None:
    """Tests that mean and error are those of the samples, and the 95 % interval that of Student's t
    with two degrees of freedom.
    """
    found = Estimate.of([1.0, 2.0, 6.0])
    assert (found.mean, found.standard_error) == pytest.approx((3.0, (7.0 / 3.0) ** 0.5))
    half = 4.302652730 * found.standard_error
    assert found.confidence_interval == pytest.approx((3.0 - half, 3.0 + half))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interruption_ends_the_loop(workers: int) -> None:
    """Tests that what has not begun when the callback raises is not played any more."""
    played: list[int] = []

    def play(part: slice) -> None:
        played.append(part.start)
        time.sleep(0.002)

    def interrupt(done: int, mean: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Replications(0, 1000, interrupt).play(
            play, lambda done: {"played": np.ones(done)}, workers=workers
        )
    assert len(played) == 1 if workers == 1 else len(played) < 500


@pytest.mark.parametrize(
    "changes", [{"seed": -1}, {"seed": True}, {"replications": 1}, {"replications": 2.0}]
)
def test_wrong_arguments_are_named(changes: dict[str, int]) -> None:
    """Tests that a bad seed and a bad number of replications are refused by name."""
    (name,) = changes
    with pytest.raises(InvalidInput, match=f"{name}: expected an integer"):
        Replications(**({"seed": 0, "replications": 2, "callback": None, "minimum": 2} | changes))  # type: ignore[arg-type]
