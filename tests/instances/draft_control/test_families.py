"""Generated problems of draft control."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from helpers.families import problem_of

from specopt import DraftControlProblem
from specopt.instances.draft_control.paper_3 import lattice_distance

make = partial(problem_of, DraftControlProblem)


@pytest.mark.parametrize(("regime", "mean"), [("low", 350e3), ("high", 4e6)])
def test_the_regimes_of_paper_3(regime: str, mean: float) -> None:
    """Tests that the mean uplink rate is the printed one, however long the states last, and the
    timings are fixed.
    """
    for up, down in ((0.1, 0.1), (0.05, 0.4), (1.0, 1.0)):
        problem = make("paper-3", regime=regime, low_to_high=up, high_to_low=down, contrast=5.0)
        rates = np.array([state.uplink_bits_per_second for state in problem.states])
        assert float(problem.stationary_distribution @ rates) == pytest.approx(mean, rel=1e-12)
        assert rates.max() / rates.min() == pytest.approx(5.0)
    assert (problem.draft_seconds_per_token, problem.verify_seconds) == (5e-3, 32e-3)
    assert all(state.downlink_bits_per_second is None for state in problem.states)


def test_acceptance_rises_with_resolution_and_falls_with_temperature() -> None:
    """Tests that finer lattices and colder distributions are accepted more, in every state of
    confidence.
    """
    cold, hot = (make("paper-3", temperature=value) for value in (0.5, 1.5))
    for one, other in zip(cold.states, hot.states, strict=True):
        assert (np.diff(one.acceptance_rates) >= -1e-15).all()
        assert (np.diff(other.acceptance_rates) > 0).all()
        assert (other.acceptance_rates < one.acceptance_rates).all()


def test_lattice_distance_is_the_nearest_point() -> None:
    """Tests that the distance is the least total variation to any point of a small lattice."""
    q = np.array([0.41, 0.33, 0.26])
    for resolution in (1, 2, 3, 7):
        points = [
            np.array([i, j, resolution - i - j]) / resolution
            for i in range(resolution + 1)
            for j in range(resolution + 1 - i)
        ]
        assert lattice_distance(q, resolution) == pytest.approx(
            min(np.abs(p - q).sum() / 2 for p in points)
        )


def test_random_and_alternating() -> None:
    """Tests that sizes and ranges are kept, and that the alternating chain has
    period 2.
    """
    problem = make(
        "random", states=7, resolutions=4, min_draft=0, max_draft=9, downlink_factor=0.0, seed=5
    )
    assert len(problem.states) == 7 and problem.resolutions.tolist() == [10, 46, 215, 1000]
    assert all(1e5 <= state.uplink_bits_per_second <= 1e7 for state in problem.states)
    assert all(state.downlink_bits_per_second is None for state in problem.states)
    link = make("alternating", resolution=20, acceptance_rate=0.5, max_draft=4)
    assert link.transition.dump() == [[0.0, 1.0], [1.0, 0.0]]
    assert (link.draft_lengths, link.resolutions.tolist()) == ((1, 4), [20])
