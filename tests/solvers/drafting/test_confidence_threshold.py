"""The best confidence threshold on a trace against plain enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.instances.drafts.confidence_trace import synthetic_trace
from specopt.models.device_speculation import ConfidenceTrace, RoundCost
from specopt.models.errors import InvalidInput
from specopt.solvers.drafting.confidence_threshold import confidence_threshold

COST = RoundCost(
    draft_seconds=0.008, uplink_bytes_per_second=7.5e6, downlink_bytes_per_second=12.5e6, bytes_per_token=8192.0,
    cloud_seconds=0.027, fixed_seconds=0.012,
)  # fmt: skip


def speed(drafts: list[list[tuple[float, int]]], threshold: float) -> float:
    """Tokens per second of a threshold, draft by draft."""
    tokens, seconds = 0, 0.0
    for draft in drafts:
        length, gained, intact = 0, 1, True
        for confidence, accepted in draft:
            length += 1
            intact = intact and accepted == 1
            gained += intact
            if confidence < threshold:
                break
        tokens += gained
        seconds += 0.039 + length * (0.008 + 8192 / 7.5e6 + 8192 / 12.5e6)
    return tokens / seconds


TOKEN = st.tuples(st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0.0, 1.0)), st.integers(0, 1))


@given(st.lists(st.lists(TOKEN, min_size=1, max_size=6), min_size=1, max_size=6), st.floats(0.0, 1.0))
def test_best_of_all_thresholds(drafts: list[list[tuple[float, int]]], other: float) -> None:
    """Tests that no threshold is faster, and that every one has the speed that enumeration gives it."""
    flat = [(index, *token) for index, draft in enumerate(drafts) for token in draft]
    trace = ConfidenceTrace(
        draft=np.array([row[0] for row in flat]), confidence=np.array([row[1] for row in flat]),
        accepted=np.array([row[2] for row in flat]),
    )  # fmt: skip
    found = confidence_threshold(trace, COST)
    assert found.tokens_per_second == pytest.approx(speed(drafts, found.threshold), rel=1e-12)
    candidates = {0.0, 1.0, other, *(confidence for _, confidence, _ in flat)}
    assert found.tokens_per_second == pytest.approx(max(speed(drafts, t) for t in candidates), rel=1e-12)
    assert found.at(other) == pytest.approx(speed(drafts, other), rel=1e-12)


def test_dear_drafts_are_stopped_sooner() -> None:
    """Tests that a slower draft model has a threshold at least as high, and shorter drafts."""
    trace = synthetic_trace(2000, seed=1)
    costs = [0.002, 0.008, 0.04]
    found = [
        confidence_threshold(trace, RoundCost(
            draft_seconds=gamma, uplink_bytes_per_second=7.5e6, downlink_bytes_per_second=12.5e6,
            bytes_per_token=8192.0, cloud_seconds=0.027,
        ))
        for gamma in costs
    ]  # fmt: skip
    assert found[0].threshold <= found[1].threshold <= found[2].threshold
    assert found[0].drafted_tokens > found[1].drafted_tokens > found[2].drafted_tokens


def test_synthetic_trace_is_what_it_says() -> None:
    """Tests that synthetic traces have the lengths, seeds and calibration asked for."""
    trace = synthetic_trace(5000, length=4, seed=2)
    assert np.diff(trace.starts).tolist() == [4] * 5000
    assert trace.accepted.mean() == pytest.approx(trace.confidence.mean(), abs=0.02)
    assert synthetic_trace(5, seed=2).confidence.tolist() == synthetic_trace(5, seed=2).confidence.tolist()
    for changes in ({"drafts": 0}, {"length": 0}, {"easy_share": 2.0}, {"calibration": -1.0}):
        with pytest.raises(InvalidInput, match=next(iter(changes))):
            synthetic_trace(**changes)
