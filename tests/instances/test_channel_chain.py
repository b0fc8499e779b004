"""A chain built from a trace: round trip, censoring, bins, warnings, and problems that can be solved."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import InvalidInput, Status, solve
from specopt.instances.draft_control.channel_chain import (
    ChannelChain,
    ChannelTrace,
    RarelySeenState,
    chain_from_trace,
    line_in_distance,
)
from specopt.models.markov_chain import recurrent_classes, stationary_distribution

UPLINKS = np.array([1e5, 1e5, 2e6, 2e6])
CONFIDENCES = np.array([0.3, 0.8, 0.3, 0.8])
RATES = np.array([0.4, 0.85, 0.5, 0.9])
CHAIN = np.array([[0.7, 0.1, 0.2, 0.0], [0.2, 0.5, 0.0, 0.3], [0.1, 0.0, 0.6, 0.3], [0.0, 0.2, 0.1, 0.7]])
TIMINGS: dict[str, Any] = {
    "vocabulary_size": 50272, "draft_seconds_per_token": 5e-3, "verify_seconds": 32e-3, "draft_lengths": (1, 16),
}  # fmt: skip


def drawn(rows: int, seed: int = 0, resolutions: tuple[int, ...] = ()) -> tuple[ChannelTrace, Any]:
    """A trace of the chain above, with drafts of 0 to 8 tokens; rates at a second resolution are a tenth lower."""
    rng = np.random.default_rng(seed)
    states = np.zeros(rows, dtype=np.int64)
    for i in range(1, rows):
        states[i] = rng.choice(4, p=CHAIN[states[i - 1]])
    drafted = rng.integers(0, 9, rows)
    which = rng.integers(0, max(1, len(resolutions)), rows)
    geometric = np.floor(np.log(rng.random(rows)) / np.log(RATES[states] - 0.1 * which)).astype(np.int64)
    trace = ChannelTrace(
        uplink_bits_per_second=UPLINKS[states] * rng.uniform(0.9, 1.1, rows),
        confidence=np.clip(CONFIDENCES[states] + rng.uniform(-0.1, 0.1, rows), 0, 1),
        accepted=np.minimum(geometric, drafted),
        drafted=drafted,
        resolution=np.array(resolutions)[which] if resolutions else None,
    )
    return trace, states


def test_round_trip() -> None:
    """Tests that a long trace of a known chain gives back its transitions, rates and links, and a solvable problem."""
    trace, _ = drawn(40_000)
    chain = chain_from_trace(trace, rate_bins=[5e5], confidence_bins=[0.5])
    assert chain.cells.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert chain.transition == pytest.approx(CHAIN, abs=0.02)
    assert chain.acceptance_rates == pytest.approx(RATES, abs=0.01)
    assert (np.abs(chain.acceptance_rates - RATES) < 4 * chain.standard_errors).all()
    assert chain.uplink_bits_per_second == pytest.approx(UPLINKS, rel=0.01)
    assert chain.rare == ()
    found = solve(chain.problem(resolutions=[100], name="measured", **TIMINGS))
    assert found.status is Status.OPTIMAL


def test_censoring() -> None:
    """Tests that the estimate does not fall with the draft length, as accepted over drafted does."""
    rng = np.random.default_rng(3)
    for length in (1, 4, 30):
        accepted = np.minimum(np.floor(np.log(rng.random(20_000)) / np.log(0.8)).astype(np.int64), length)
        trace = ChannelTrace(
            uplink_bits_per_second=np.ones(20_000), confidence=np.ones(20_000), accepted=accepted,
            drafted=np.full(20_000, length),
        )  # fmt: skip
        chain = chain_from_trace(trace)
        assert len(chain) == 1
        assert chain.acceptance_rates[0] == pytest.approx(0.8, abs=4 * chain.standard_errors[0])
    assert accepted.sum() / (20_000 * 30) < 0.2


@given(st.data())
@settings(max_examples=50)
def test_always_one_recurrent_class(data: st.DataObject) -> None:
    """Tests that any trace gives an irreducible chain whose stationary distribution is the shares of its rows."""
    rows = data.draw(st.integers(2, 25))
    trace = ChannelTrace(
        uplink_bits_per_second=np.array(
            data.draw(st.lists(st.sampled_from((1.0, 2.0, 9.0)), min_size=rows, max_size=rows))
        ),
        confidence=np.array(data.draw(st.lists(st.floats(0, 1), min_size=rows, max_size=rows))),
        accepted=np.ones(rows, dtype=np.int64),
        drafted=np.array(data.draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows))),
    )
    chain = chain_from_trace(
        trace, rate_bins=data.draw(st.integers(1, 4)), confidence_bins=data.draw(st.integers(1, 4)),
        least_iterations=0, least_tested=0,
    )  # fmt: skip
    assert recurrent_classes(chain.transition) == [list(range(len(chain)))]
    shares = stationary_distribution(chain.transition, list(range(len(chain))))
    assert shares == pytest.approx(chain.counts / rows, abs=1e-12)
    assert chain.counts.sum() == rows == chain.transition_counts.sum()
    for row in range(rows):
        assert 0 <= chain.state_of(float(trace.uplink_bits_per_second[row]), float(trace.confidence[row])) < len(chain)


def test_measurements_find_their_state() -> None:
    """Tests that every row is counted in the state that its own measurement finds, and unseen cells the nearest."""
    trace, _ = drawn(500)
    with pytest.warns(RarelySeenState):
        chain = chain_from_trace(trace, rate_bins=3, confidence_bins=4, least_iterations=100)
    found = [
        chain.state_of(rate, sure) for rate, sure in zip(trace.uplink_bits_per_second, trace.confidence, strict=True)
    ]
    assert np.bincount(found, minlength=len(chain)).tolist() == chain.counts.tolist()
    two = chain_from_trace(
        ChannelTrace(
            uplink_bits_per_second=np.array([1.0, 9.0]), confidence=np.array([0.1, 0.9]),
            accepted=np.array([1, 1]), drafted=np.array([1, 1]),
        ), least_iterations=0, least_tested=0,
    )  # fmt: skip
    assert two.cells.tolist() == [[0, 0], [1, 1]]
    assert [two.state_of(1.0, 0.9), two.state_of(9.0, 0.1), two.state_of(1e-9, 0.0)] == [0, 1, 0]


def test_bins() -> None:
    """Tests that quantiles share the rows out evenly, and that repeated values fall into one bin each."""
    trace, _ = drawn(4000)
    chain = chain_from_trace(trace, rate_bins=1, confidence_bins=4)
    assert chain.counts == pytest.approx(np.full(4, 1000), abs=1)
    values = np.array([1.0] * 60 + [5.0] * 20 + [7.0] * 20)
    same = ChannelTrace(
        uplink_bits_per_second=values, confidence=np.ones(100), accepted=np.ones(100, int), drafted=np.ones(100, int)
    )
    for bins, counts in ((2, [60, 40]), (3, [60, 20, 20]), (50, [60, 20, 20]), ([5.0], [80, 20]), ([], [100])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RarelySeenState)
            assert chain_from_trace(same, rate_bins=bins).counts.tolist() == counts


def test_harmonic_mean() -> None:
    """Tests that the mean upload time of a bin is that of its rows."""
    trace, _ = drawn(3000)
    chain = chain_from_trace(trace, rate_bins=1, confidence_bins=1)
    assert 1.0 / chain.uplink_bits_per_second[0] == pytest.approx(np.mean(1.0 / trace.uplink_bits_per_second))


def test_smoothing() -> None:
    """Tests that smoothing makes every transition possible, and hardly matters where much was seen."""
    trace, _ = drawn(20_000)
    chain = chain_from_trace(trace, rate_bins=[5e5], confidence_bins=[0.5], smoothing=5.0)
    assert (chain.transition > 0).all()
    assert chain.transition == pytest.approx(CHAIN, abs=0.02)
    assert chain.transition[0, 3] == pytest.approx(
        5.0 * chain.counts[3] / 20_000 / (chain.counts[0] + 5.0), rel=1e-12
    )  # fmt: skip


def test_warning_names_rare_states() -> None:
    """Tests that states with few iterations or few tested drafts are named, once, and take the trace's rate if none."""
    trace, _ = drawn(300)
    rare = ChannelTrace(
        uplink_bits_per_second=np.append(trace.uplink_bits_per_second, 9e9),
        confidence=np.append(trace.confidence, 0.2), accepted=np.append(trace.accepted, 0),
        drafted=np.append(trace.drafted, 0),
    )  # fmt: skip
    with pytest.warns(
        RarelySeenState, match=r"1 of 2 states rarely seen: state 1 \(rate bin 1, confidence bin 0\): 1 it"
    ):
        chain = chain_from_trace(rare, rate_bins=[1e9], confidence_bins=1)
    assert chain.rare == (1,) and chain.tested[1] == 0
    assert chain.acceptance_rates[1] == chain.acceptance_rates[0]
    assert np.isnan(chain.standard_errors[1])


def test_column_of_resolutions() -> None:
    """Tests that rates per resolution are measured where the trace has the column, and refused where drafts lack."""
    trace, _ = drawn(40_000, resolutions=(100, 30))
    chain = chain_from_trace(trace, rate_bins=[5e5], confidence_bins=[0.5])
    problem = chain.problem(resolutions=[30, 100], **TIMINGS)
    for state, rate in zip(problem.states, RATES, strict=True):
        assert state.acceptance_rates == pytest.approx([rate - 0.1, rate], abs=0.02)
    with pytest.raises(InvalidInput, match=r"those of the trace \(30, 100\), got 10"):
        chain.problem(resolutions=[10], **TIMINGS)
    few, _ = drawn(12, resolutions=(100, 30))
    with pytest.warns(RarelySeenState):
        small = chain_from_trace(few, rate_bins=[5e5], confidence_bins=[0.5])
    with pytest.raises(InvalidInput, match="in every state, got none at"):
        small.problem(resolutions=[100, 30], **TIMINGS)


def test_acceptance_model() -> None:
    """Tests that the line in the distance meets what was measured, and that a function of one's own is used."""
    trace, _ = drawn(5000)
    chain = chain_from_trace(trace, rate_bins=[5e5], confidence_bins=[0.5])
    line = line_in_distance(0.5, {10: 0.4, 100: 0.1, 1000: 0.0}, measured_distance=0.1)
    problem = chain.problem(resolutions=[10, 100, 1000], acceptance=line, **TIMINGS)
    for state, rate in zip(problem.states, chain.acceptance_rates.tolist(), strict=True):
        assert state.acceptance_rates == pytest.approx([rate - 0.15, rate, min(1.0, rate + 0.05)])
    own = chain.problem(resolutions=[10, 20], acceptance=lambda rate, value: rate * value / 20, **TIMINGS)
    assert own.states[0].acceptance_rates == pytest.approx([chain.acceptance_rates[0] / 2, chain.acceptance_rates[0]])
    with pytest.raises(InvalidInput, match="no column of resolutions"):
        chain.problem(resolutions=[10, 100], **TIMINGS)
    with pytest.raises(InvalidInput, match="distances: expected one for resolution 7"):
        chain.problem(resolutions=[7], acceptance=line, **TIMINGS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate_bins": 0}, "rate_bins: expected an integer from 1 to"),
        ({"rate_bins": True}, "rate_bins: expected an integer from 1 to"),
        ({"confidence_bins": [0.5, 0.5]}, "confidence_bins: expected a number of bins or increasing"),
        ({"confidence_bins": "many"}, "confidence_bins: expected a number of bins or increasing"),
        ({"smoothing": -1.0}, "smoothing: expected a finite number >= 0"),
        ({"least_tested": -1}, "least_tested: expected an integer >= 0"),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    """Tests that bad arguments are named."""
    with pytest.raises(InvalidInput, match=message):
        chain_from_trace(drawn(50)[0], **change)


def test_no_drafts_at_all() -> None:
    """Tests that a trace without any drafts is refused."""
    nothing = ChannelTrace(
        uplink_bits_per_second=np.ones(4), confidence=np.ones(4), accepted=np.zeros(4, int), drafted=np.zeros(4, int)
    )
    with pytest.raises(InvalidInput, match="drafted: expected drafts"):
        chain_from_trace(nothing)


def test_type() -> None:
    """Tests that the length of a chain is its number of states."""
    chain = chain_from_trace(drawn(3000)[0])
    assert isinstance(chain, ChannelChain) and len(chain) == len(chain.cells)


def test_trace_checks_itself() -> None:
    """Tests that arrays of different lengths and impossible counts are refused."""
    ones = np.ones(3)
    with pytest.raises(InvalidInput, match="confidence: expected 3 entries"):
        ChannelTrace(
            uplink_bits_per_second=ones, confidence=np.ones(2), accepted=np.ones(3, int), drafted=np.ones(3, int)
        )
    with pytest.raises(InvalidInput, match=r"accepted\[1\]: expected at most the 1 drafted"):
        ChannelTrace(
            uplink_bits_per_second=ones, confidence=ones, accepted=np.array([1, 2, 0]), drafted=np.array([1, 1, 1])
        )
