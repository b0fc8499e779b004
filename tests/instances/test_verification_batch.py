"""Generated problems of verification batching."""

from __future__ import annotations

from typing import Any

import pytest

from specopt import InvalidInput, VerificationBatchProblem, generate


def make(family: str, **parameters: Any) -> VerificationBatchProblem:
    """A problem of a family."""
    problem = generate(f"verification-batch/{family}", **parameters)
    assert isinstance(problem, VerificationBatchProblem)
    return problem


def test_families() -> None:
    """Tests that each family is what its name says, and that the seed decides."""
    assert make("warm", requests=500).cached_tokens.min() > 0
    assert (make("mixed", requests=2000, cold_share=0.25).cached_tokens == 0).mean() == pytest.approx(0.25, abs=0.03)
    assert make("tight", requests=500, longest_seconds=0.05).deadline_seconds.max() <= 0.05
    bound = make("memory-bound", memory_share=0.2)
    assert bound.memory_bytes == pytest.approx(0.2 * bound.request_memory_bytes.sum())
    assert make("warm", seed=1) == make("warm", seed=1) != make("warm", seed=2)
    assert make("warm", coefficients="section-4.4").estimator.seconds_per_new_token == 143.39e-6


@pytest.mark.parametrize(
    ("family", "parameters", "message"),
    [
        ("warm", {"requests": -1}, "requests: expected an integer >= 0, got -1"),
        ("warm", {"coefficients": "odd"}, "coefficients: expected one of table-12, section-4.4, got 'odd'"),
        ("mixed", {"cold_share": 1.5}, r"cold_share: expected a number in \[0, 1\], got 1.5"),
        ("tight", {"longest_seconds": 0.0}, "longest_seconds: expected a finite number > 0, got 0.0"),
        ("memory-bound", {"memory_share": -0.1}, "memory_share: expected a finite number >= 0, got -0.1"),
    ],
)
def test_parameters_are_checked(family: str, parameters: dict[str, Any], message: str) -> None:
    """Tests that a parameter outside its domain is refused by name."""
    with pytest.raises(InvalidInput, match=message):
        make(family, **parameters)
