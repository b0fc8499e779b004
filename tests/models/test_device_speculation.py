"""Drafts on a device: Eq. 6 by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.device_speculation import parallel_steps
from specopt.models.errors import InvalidInput


def steps_of(tokens: int, up: float, down: float, cloud: float, gamma: float) -> int:
    """Return the drafts that are made while tokens are verified."""
    return parallel_steps(
        tokens,
        bytes_per_token=8192.0,
        uplink_bytes_per_second=up,
        downlink_bytes_per_second=down,
        cloud_seconds=cloud,
        draft_seconds=gamma,
    )


@given(
    st.integers(1, 9),
    st.floats(1e6, 2e7),
    st.floats(1e6, 2e7),
    st.floats(0.0, 0.1),
    st.floats(1e-3, 0.1),
)
def test_equation_6_takes_what_fits(
    tokens: int, up: float, down: float, cloud: float, gamma: float
) -> None:
    """Tests that lambda steps fit into the verification and one more does not."""
    steps = steps_of(tokens, up, down, cloud, gamma)
    spent = tokens * 8192.0 / up + cloud + tokens * 8192.0 / down
    assert steps * gamma <= spent * (1 + 1e-12)
    assert (steps + 1) * gamma > spent * (1 - 1e-12)


def test_wrong_values_are_refused() -> None:
    """Tests that the message names the argument."""
    with pytest.raises(InvalidInput, match="draft_seconds"):
        steps_of(1, 1.0, 1.0, 1.0, 0.0)
