"""Verification batches predicted in one world, compared with known passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.experiments.verification_batch import MARGIN, known_to, play, predict_padded

REQUESTS: dict[str, list[Any]] = {
    "arrival_seconds": [0.0, 0.01, 0.02, 0.5],
    "deadline_seconds": [0.2, 0.3, 0.4, 0.9],
    "new_tokens": [2, 5, 3, 4],
    "cached_tokens": [40, 90, 60, 80],
    "expected_tokens": [1.5, 1.9, 1.75, 1.8],
}


def padded_seconds(new: Any, cached: Any) -> float:
    """Return 50 ms, 4 ms per padded token and 0.01 ms per padded cached one."""
    return float(0.05 + len(new) * (4e-3 * np.max(new) + 1e-5 * np.max(cached)))


def test_without_noise_the_prediction_is_a_play_in_the_padded_world() -> None:
    """Tests that passes that are exactly padded are recovered, and that noise is drawn from their
    residuals.
    """
    random = np.random.default_rng(0)
    sizes = random.integers(1, 9, size=30)
    new = [random.integers(2, 6, size=size).tolist() for size in sizes]
    cached = [random.integers(32, 161, size=size).tolist() for size in sizes]
    ragged: dict[str, Any] = {
        "new": new,
        "cached": cached,
        "seconds": list(map(padded_seconds, new, cached)),
    }
    known = known_to(MARGIN, {"ragged": ragged})
    estimator, factor = known
    exact, _ = play(REQUESTS, estimator.scaled(factor, factor), "fcfs", padded_seconds)
    assert predict_padded(REQUESTS, ragged, "fcfs", known, seed=0) == pytest.approx(exact, rel=1e-3)
    ragged["seconds"] = [one * (0.8, 1.2)[place % 2] for place, one in enumerate(ragged["seconds"])]
    noisy = predict_padded(REQUESTS, ragged, "fcfs", known, seed=0)
    assert noisy == predict_padded(REQUESTS, ragged, "fcfs", known, seed=0)
    assert (
        noisy["busy_seconds"]
        != predict_padded(REQUESTS, ragged, "fcfs", known, seed=1)["busy_seconds"]
    )
