"""Generated problems of verification batching."""

from __future__ import annotations

from functools import partial

import pytest
from helpers.families import problem_of

from specopt import VerificationBatchProblem

make = partial(problem_of, VerificationBatchProblem)


def test_families() -> None:
    """Tests that each family is what its name says."""
    assert make("warm", requests=500).cached_tokens.min() > 0
    assert (
        make("mixed", requests=2000, cold_share=0.25).cached_tokens == 0
    ).mean() == pytest.approx(0.25, abs=0.03)
    assert make("tight", requests=500, longest_seconds=0.05).deadline_seconds.max() <= 0.05
    bound = make("memory-bound", memory_share=0.2)
    assert bound.memory_bytes == pytest.approx(0.2 * bound.request_memory_bytes.sum())
    assert make("warm", coefficients="section-4.4").estimator.seconds_per_new_token == 143.39e-6
