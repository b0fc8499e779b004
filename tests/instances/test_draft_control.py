"""Generated problems of draft control."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt import DraftControlProblem, InvalidInput, generate
from specopt.instances.draft_control.paper_3 import lattice_distance


def make(family: str, **parameters: Any) -> DraftControlProblem:
    """A problem of a family."""
    problem = generate(f"draft-control/{family}", **parameters)
    assert isinstance(problem, DraftControlProblem)
    return problem


@pytest.mark.parametrize(("regime", "mean"), [("low", 350e3), ("high", 4e6)])
def test_the_regimes_of_paper_3(regime: str, mean: float) -> None:
    """Tests that the mean uplink rate is the printed one, however long the states last, and the timings are fixed."""
    for up, down in ((0.1, 0.1), (0.05, 0.4), (1.0, 1.0)):
        problem = make("paper-3", regime=regime, low_to_high=up, high_to_low=down, contrast=5.0)
        rates = np.array([state.uplink_bits_per_second for state in problem.states])
        assert float(problem.stationary_distribution @ rates) == pytest.approx(mean, rel=1e-12)
        assert rates.max() / rates.min() == pytest.approx(5.0)
    assert (problem.draft_seconds_per_token, problem.verify_seconds) == (5e-3, 32e-3)
    assert all(state.downlink_bits_per_second is None for state in problem.states)


def test_acceptance_rises_with_resolution_and_falls_with_temperature() -> None:
    """Tests that finer lattices and colder distributions are accepted more, in every state of confidence."""
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
        assert lattice_distance(q, resolution) == pytest.approx(min(np.abs(p - q).sum() / 2 for p in points))


def test_random_and_alternating() -> None:
    """Tests that sizes and ranges are kept and the seed decides; and that the alternating chain has period 2."""
    problem = make("random", states=7, resolutions=4, min_draft=0, max_draft=9, downlink_factor=0.0, seed=5)
    assert len(problem.states) == 7 and problem.resolutions.tolist() == [10, 46, 215, 1000]
    assert all(1e5 <= state.uplink_bits_per_second <= 1e7 for state in problem.states)
    assert all(state.downlink_bits_per_second is None for state in problem.states)
    assert make("random", seed=1) == make("random", seed=1) != make("random", seed=2)
    link = make("alternating", resolution=20, acceptance_rate=0.5, max_draft=4)
    assert link.transition.dump() == [[0.0, 1.0], [1.0, 0.0]]
    assert (link.draft_lengths, link.resolutions.tolist()) == ((1, 4), [20])


@pytest.mark.parametrize(
    ("family", "parameters", "message"),
    [
        ("paper-3", {"regime": "odd"}, "regime: expected one of low, high, got 'odd'"),
        ("paper-3", {"temperature": 0.0}, "temperature: expected a finite number > 0, got 0.0"),
        ("paper-3", {"high_to_low": 0.0}, r"high_to_low: expected a number in \(0, 1\], got 0.0"),
        ("paper-3", {"loss": 2.0}, r"loss: expected a number in \[0, 1\], got 2.0"),
        ("random", {"states": 0}, "states: expected an integer from 1 to 10,000, got 0"),
        ("random", {"resolutions": 500}, "resolutions: expected an integer from 1 to 100, got 500"),
        ("random", {"stay": 1.0}, r"stay: expected a number in \[0, 1\), got 1.0"),
        ("random", {"slow_bits_per_second": 0.0}, "slow_bits_per_second: expected a finite number > 0, got 0.0"),
        ("random", {"downlink_factor": -1.0}, "downlink_factor: expected a finite number >= 0, got -1.0"),
        ("alternating", {"acceptance_rate": 1.5}, r"acceptance_rates\[0\]: expected float|acceptance_rates\[0\]: "),
    ],
)
def test_parameters_are_checked(family: str, parameters: dict[str, Any], message: str) -> None:
    """Tests that parameters outside their domain are refused by name."""
    with pytest.raises(InvalidInput, match=message):
        make(family, **parameters)
