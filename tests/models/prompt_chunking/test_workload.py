"""Workloads and rounds of prompts: domains, lengths and laws."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.instances.prompt_chunking.workload import paper_4_workload
from specopt.models.errors import InvalidInput
from specopt.models.prompt_chunking.workload import Rounds, Scheme

WORKLOAD = paper_4_workload()


def test_lengths_have_mean_and_deviation() -> None:
    """Tests that lognormal lengths are those of Table 3, and that a trace is drawn from as it
    is.
    """
    tokens = paper_4_workload("cnn-dm").lengths(40000, np.random.default_rng(0))
    assert tokens.mean() == pytest.approx(1036.6, rel=0.02)
    assert tokens.std() == pytest.approx(511.8, rel=0.05)
    assert np.quantile(tokens, 0.9) == pytest.approx(1772.0, rel=0.06)  # printed, not fitted
    traced = dataclasses.replace(WORKLOAD, prompt_tokens=np.array([5, 70]))
    assert set(traced.lengths(100, np.random.default_rng(0)).tolist()) == {5, 70}
    cut = dataclasses.replace(WORKLOAD, most_prompt_tokens=100)
    assert cut.lengths(1000, np.random.default_rng(0)).max() == 100
    fixed = dataclasses.replace(WORKLOAD, prompt_std_tokens=0.0)
    assert set(fixed.lengths(10, np.random.default_rng(0)).tolist()) == {351}


def test_wrong_workloads_are_refused() -> None:
    """Tests that messages name the field."""
    for changes, match in (
        ({"uplink_bytes_per_second": np.array([2.0, 1.0])}, "uplink_bytes_per_second"),
        ({"downlink_bytes_per_second": np.array([1.0])}, "downlink_bytes_per_second"),
        ({"requests_per_second": 0.0}, "requests_per_second"),
        ({"pipeline_length": 0}, "pipeline_length"),
        ({"draft_seconds": np.array([0.0])}, "draft_seconds"),
    ):
        with pytest.raises(InvalidInput, match=match):
            dataclasses.replace(WORKLOAD, **changes)
    with pytest.raises(InvalidInput, match="probabilities: expected a sum of 1"):
        dataclasses.replace(Rounds.one_by_one(), probabilities=np.array([0.5]))
    with pytest.raises(InvalidInput, match="server_chunk_tokens"):
        Scheme(name="", rounds=Rounds.one_by_one(), server_chunk_tokens=0)


@given(st.floats(1.001, 2.99), st.integers(1, 16))
def test_trees_have_their_mean(mean: float, sent: int) -> None:
    """Tests that a tree's gains have the mean that is asked for, between 1 and 5 tokens."""
    rounds = Rounds.tree(sent, mean)
    assert rounds.mean_gained == pytest.approx(mean, rel=1e-9)
    assert rounds.gained.tolist() == [1, 2, 3, 4, 5]
    assert set(rounds.sent.tolist()) == {sent}
    for wrong in (1.0, 3.0):
        with pytest.raises(InvalidInput, match="mean_gained"):
            Rounds.tree(sent, wrong)
