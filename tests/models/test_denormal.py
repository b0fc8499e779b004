"""Numbers that are too small for floating point to hold all their digits."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import pytest

from specopt import InvalidInput, VerificationBatchProblem


@pytest.mark.parametrize(
    ("value", "refused"), [(0.0, False), (sys.float_info.min, False), (-1e-310, True)]
)
def test_smallest_numbers(value: float, refused: bool) -> None:
    """Tests that 0 and the smallest normal number are taken, and that negative denormal ones are
    refused.
    """
    data = {
        "format": "specopt/1",
        "kind": "verification-batch",
        "now_seconds": value,
        "memory_bytes": 1.0,
        "expected_tokens": [1.0],
        "new_tokens": [1],
        "cached_tokens": [0],
        "request_memory_bytes": [0.5],
        "deadline_seconds": [1.0],
        "estimator": dict.fromkeys(
            (
                "seconds_per_new_token",
                "seconds_per_interaction",
                "seconds_per_cached_token",
                "overhead_seconds",
            ),
            0.0,
        ),
    }
    with (
        pytest.raises(InvalidInput, match=r"^now_seconds: expected 0 or")
        if refused
        else nullcontext()
    ):
        VerificationBatchProblem.from_dict(data)
