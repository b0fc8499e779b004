"""Numbers that are too small for floating point to hold all their digits."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import nullcontext
from typing import Any

import pytest
from small_instances.verification_batch import INSTANCES

from specopt import InvalidInput


@pytest.mark.parametrize(
    ("value", "refused"), [(0.0, False), (sys.float_info.min, False), (-1e-310, True)]
)
def test_smallest_numbers(value: float, refused: bool) -> None:
    """Tests that 0 and the smallest normal number are taken, and that negative denormal ones are
    refused.
    """
    problem: Any = INSTANCES["base"]
    with (
        pytest.raises(InvalidInput, match=r"^now_seconds: expected 0 or")
        if refused
        else nullcontext()
    ):
        dataclasses.replace(problem, now_seconds=value)
