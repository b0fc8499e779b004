"""Integers as texts of zeros and ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from testbed.codes.bits import checked_counts, fixed_width, read_fixed_width


@given(
    st.integers(0, 2**90), st.integers(0, 5), st.text("01", max_size=5), st.text("01", max_size=5)
)
def test_round_trip(value: int, spare: int, before: str, after: str) -> None:
    """Tests that an integer is recovered from the middle of a text."""
    width = value.bit_length() + spare
    bits = fixed_width(value, width)
    assert len(bits) == width
    assert read_fixed_width(before + bits + after, len(before), width, value + 1) == value


@pytest.mark.parametrize(
    ("bits", "limit"), [("01", 8), ("012", 8), ("0 1", 8), ("+01", 8), ("110", 6), ("", 8)]
)
def test_what_is_no_codeword_is_refused(bits: str, limit: int) -> None:
    """Tests that a text that is too short, has other characters or exceeds the limit is
    rejected.
    """
    with pytest.raises(InvalidInput, match="bits: expected"):
        read_fixed_width(bits, 0, 3, limit)


@pytest.mark.parametrize(
    "counts", [[], [0, 0], [1, -1], [0.5, 0.5], [[1]], "12", [[1], [1, 2]], [True]]
)
def test_what_are_no_counts_is_refused(counts: Any) -> None:
    """Tests that counts must be integers >= 0 in one dimension, not all of them 0."""
    with pytest.raises(InvalidInput, match="counts: expected"):
        checked_counts(counts)
