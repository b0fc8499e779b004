"""Synthetic logs of drafted tokens whose truth is known, for predictors and policies to be tested
on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION, DraftLog
from specopt.models.fields import Floats

FEATURES = ("confidence", "entropy", "margin", "deviation")
"""What a device sees of the draft distribution: paper 2's four statistics of it."""


def draft_log(
    rounds: int = 2000,
    *,
    window: int = 8,
    acceptance_rate: float = 0.73,
    signal: float = 1.0,
    seed: int = 0,
) -> DraftLog:
    """Draw rounds of a fixed window.

    A token's ease z is standard normal; it is accepted with probability 1 / (1 + exp(-(b + 2 signal
    z + curve))), where the curve 0.6 signal (z^2 - 1) is what a straight line cannot follow and b
    is chosen so that the mean is the acceptance rate. The four features are noisy, monotone
    functions of z. After a rejection, z is lower by signal / 2: the draft goes on from a token that
    the target would not have written. Without signal the features say nothing.
    """
    rng = np.random.default_rng(seed)
    ease = rng.standard_normal((rounds, window))
    kept = rng.random((rounds, window)) < acceptance_probability(
        ease, acceptance_rate=acceptance_rate, signal=signal
    )
    alive = np.cumprod(kept, axis=1).astype(bool)
    before = np.concatenate([np.ones((rounds, 1), dtype=bool), alive[:, :-1]], axis=1)
    outcomes = np.where(alive, ACCEPTED, np.where(before, FIRST_REJECTION, AFTER))
    ease = np.where(before, ease, ease - 0.5 * signal).ravel()
    noise = rng.standard_normal((3, len(ease)))
    features = [
        _sigmoid(1.0 + ease),
        np.exp(0.6 - 0.7 * ease + 0.4 * noise[0]),
        _sigmoid(0.3 + 1.2 * ease + 0.8 * noise[1]),
        np.exp(0.3 * ease + 0.3 * noise[2]),
    ]
    return DraftLog(
        features=np.column_stack(features),
        outcomes=outcomes.ravel(),
        names=FEATURES,
        rounds=np.repeat(np.arange(rounds), window),
    )


def acceptance_probability(
    ease: Any, *, acceptance_rate: float = 0.73, signal: float = 1.0
) -> Floats:
    """Return the true probability of acceptance of tokens of this ease: what no predictor can
    beat.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    weights = weights / weights.sum()
    low, high = -60.0, 60.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if float(weights @ _sigmoid(middle + _slope(nodes, signal))) < acceptance_rate:
            low = middle
        else:
            high = middle
    return _sigmoid(low + _slope(np.asarray(ease, dtype=np.float64), signal))


def ease_of(features: Any) -> Floats:
    """Return the ease that the features of `draft_log` were drawn from: the first one hides it
    exactly.
    """
    confidence = np.asarray(features, dtype=np.float64)[:, 0]
    return np.log(confidence / (1.0 - confidence)) - 1.0


def _slope(ease: Floats, signal: float) -> Floats:
    return np.asarray(2.0 * signal * ease + 0.6 * signal * (ease**2 - 1.0), dtype=np.float64)


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)), dtype=np.float64)


def write(log: DraftLog, path: Path) -> Path:
    """Write a log as the table that the command reads."""
    assert log.rounds is not None
    rows = [",".join(("round", "outcome", *log.names))]
    for number, outcome, features in zip(log.rounds, log.outcomes, log.features, strict=True):
        rows.append(",".join([str(number), str(outcome), *(f"{value:.12g}" for value in features)]))
    path.write_text("\n".join(rows))
    return path
