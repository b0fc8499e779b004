"""Inputs of predictions: runtimes fitted to passes of the phases that are played, and
acceptance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt import InvalidInput
from testbed.calibration import acceptance_rate, fit_estimator, fit_passes


def passes() -> dict[str, list[Any]]:
    """Return passes that take max(0.02, 1e-9 F b + 0.01) s, but those of one token 0.005 s."""
    rows = [
        (
            phase,
            batch,
            flops,
            0.005 if phase == "decode" else max(0.02, 1e-9 * flops * batch + 0.01),
        )
        for phase, flops in (("prefill", 4e7), ("verify", 1e6), ("verify", 8e6), ("decode", 5e5))
        for batch in (1, 2, 4, 8)
    ]
    names = ("phase", "batch", "flops_per_task", "seconds_median")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def test_runtime_is_that_of_the_phases_asked_for() -> None:
    """Tests that the roofline of prefill and verification is recovered, independent of decoding
    passes.
    """
    runtime = fit_passes(passes(), ("prefill", "verify")).runtime
    for batch, flops in ((1, 1e6), (3, 4e7), (8, 8e6)):
        expected = max(0.02, 1e-9 * flops * batch + 0.01)
        assert float(runtime.seconds(batch, np.asarray(flops))) == pytest.approx(expected, rel=1e-3)


def test_phases_that_were_not_measured_are_refused() -> None:
    """Tests that a fit without passes reports the expected phases."""
    with pytest.raises(InvalidInput, match="sleep"):
        fit_passes(passes(), ("sleep",))


def test_acceptance_counts_drafts_up_to_the_first_rejection() -> None:
    """Tests that drafts after a rejected one do not count as rejected, and that complete rounds
    have no rejection.
    """
    assert acceptance_rate([[4, 0], [1]], 4) == 5 / (4 + 1 + 2)
    assert acceptance_rate([[2, 2]], 2) == 1.0
    assert acceptance_rate([[0, 0], [1, 0], [4]], [0, 1, 4]) == 5 / (0 + 0 + 1 + 1 + 4)


def test_acceptance_estimates_the_rate_of_geometric_rounds() -> None:
    """Tests that the rate of randomly drawn rounds is recovered, within 4 standard errors."""
    random = np.random.default_rng(0)
    rate, length = 0.6, 5
    accepted = np.cumprod(random.random((20_000, length)) < rate, axis=1).sum(axis=1).tolist()
    assert acceptance_rate([accepted], length) == pytest.approx(
        rate, abs=4 * np.sqrt(0.24 / 40_000)
    )


def test_estimator_is_the_additive_form() -> None:
    """Tests that the coefficients of Eq. 18-19 are recovered from times."""
    rows = [(new, cached, batch) for new in (2, 5) for cached in (8, 64) for batch in (1, 2, 4)]
    found = fit_estimator(
        {
            "phase": ["verify"] * len(rows),
            "batch_new_tokens": [new * batch for new, _, batch in rows],
            "batch_interactions": [new * (cached + new) * batch for new, cached, batch in rows],
            "batch_cached_tokens": [cached * batch for _, cached, batch in rows],
            "seconds_median": [
                0.02 + batch * (0.003 * new + 1e-6 * new * (cached + new) + 2e-5 * cached)
                for new, cached, batch in rows
            ],
        }
    )
    numbers = (
        found.seconds_per_new_token,
        found.seconds_per_interaction,
        found.seconds_per_cached_token,
    )
    assert numbers == pytest.approx((0.003, 1e-6, 2e-5), rel=1e-3)
    assert found.overhead_seconds == pytest.approx(0.02, rel=1e-3)
