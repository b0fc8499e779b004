"""Problems with one state: long drafts, and rates that rise again behind a peak."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.untyped import solve
from hypothesis import given
from hypothesis import strategies as st
from oracles import draft_control as naive

from specopt import DraftControlProblem, Status
from specopt.kinds.draft_control.strategies import acceptance, uplinks


def one_state(state: Any, **fields: Any) -> DraftControlProblem:
    """A problem with one state."""
    return DraftControlProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": "draft-control",
            "states": [state],
            "transition": [[1.0]],
            **fields,
        }
    )


@given(
    acceptance,
    uplinks,
    st.none() | uplinks,
    st.sampled_from((1e-3, 0.1, 10.0)),
    st.integers(0, 40),
    st.integers(0, 900),
)
def test_both_agree_on_long_drafts(
    rate: float, up: float, down: float | None, verify: float, shortest: int, more: int
) -> None:
    """Tests that policy iteration finds what enumeration finds among hundreds of draft lengths."""
    state = {
        "uplink_bits_per_second": up,
        "acceptance_rates": [rate, rate / 2 if rate > 1e-300 else 0.0, (1 + rate) / 2],
    }
    if down is not None:
        state["downlink_bits_per_second"] = down
    later = [
        verify * (1.0 if length < shortest + more // 2 else 0.1)
        for length in range(shortest + more + 1)
    ]
    for seconds in (verify, later):
        problem = one_state(
            state,
            vocabulary_size=50,
            draft_seconds_per_token=1e-4,
            verify_seconds=seconds,
            draft_lengths=[shortest, shortest + more],
            resolutions=[3, 1, 20],
        )
        full, quick = solve(problem, "brute-force"), solve(problem, "policy-iteration")
        assert full.status is quick.status is Status.OPTIMAL
        assert quick.objective == pytest.approx(full.objective, rel=1e-12)


def test_a_downlink_can_give_several_peaks() -> None:
    """Tests that a rate can fall wherever one more bit counts the drafts, up to 16, and be best
    behind that.
    """
    problem = one_state(
        {
            "uplink_bits_per_second": 1e9,
            "downlink_bits_per_second": 0.25,
            "acceptance_rates": [0.98],
        },
        vocabulary_size=2,
        draft_seconds_per_token=1.0,
        verify_seconds=1.0,
        draft_lengths=[1, 30],
        resolutions=[1],
    )
    rates = [float(rate) for rate, _ in naive.rates(problem.to_dict())]
    falls = [L for L in range(1, 29) if rates[L] < rates[L - 1] and max(rates[L:]) > rates[L - 1]]
    assert [L + 1 for L in falls] == [2, 4, 8, 16]  # rates[L] is that of L + 1 drafts
    assert solve(problem).objective == pytest.approx(max(rates), rel=1e-12)
