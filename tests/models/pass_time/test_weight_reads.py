"""Weights that a pass reads: expectations against simulated routing, limits, and monotonicity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.errors import InvalidInput
from specopt.models.pass_time.weight_reads import ExpertLayers, WeightReads


@st.composite
def layers(draw: st.DrawFn) -> ExpertLayers:
    """Layers with experts."""
    experts = draw(st.integers(1, 300))
    per_token = draw(st.integers(1, experts))
    size = draw(st.floats(0, 1e9))
    return ExpertLayers(
        layers=draw(st.integers(1, 90)),
        experts=experts,
        experts_per_token=per_token,
        expert_bytes=size,
    )


@given(layers(), st.integers(0, 5000), st.floats(0, 1e12))
def test_bounds_and_monotonicity(group: ExpertLayers, tokens: int, dense: float) -> None:
    """Tests that the expectation is within the limits, and that a token more never reads less."""
    reads = WeightReads(dense_bytes=dense, experts=(group,))
    low, high = reads.limits(tokens)
    slack = 1 + 1e-12
    assert low <= slack * reads.bytes(tokens) and reads.bytes(tokens) <= slack * high
    assert reads.bytes(tokens) <= slack * reads.bytes(tokens + 1)
    assert all(
        now <= later for now, later in zip((low, high), reads.limits(tokens + 1), strict=True)
    )
    if tokens <= 1:
        assert reads.bytes(tokens) == pytest.approx(low) == pytest.approx(high)


def test_the_expectation_is_that_of_routing_at_random() -> None:
    """Tests that 20,000 passes of 6 tokens, each to 3 of 16 at random, read the expected number of
    experts.
    """
    group = ExpertLayers(layers=1, experts=16, experts_per_token=3, expert_bytes=1.0)
    random = np.random.default_rng(0)
    chosen = random.permuted(np.broadcast_to(np.arange(16), (20_000, 6, 16)), axis=2)[
        :, :, :3
    ].reshape(20_000, 18)
    distinct = np.array([len(set(row)) for row in chosen.tolist()])
    error = distinct.std() / np.sqrt(len(distinct))
    assert abs(distinct.mean() - group.expected_experts(6)) < 4 * error
    assert group.expert_limits(6) == (3, 16)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=12), st.integers(1, 40))
def test_uneven_routing_reads_less(popularity: list[float], tokens: int) -> None:
    """Tests that independent tokens that prefer some experts need no more of them than the
    expectation says.
    """
    chance = np.array(popularity) / sum(popularity)  # one expert per token
    group = ExpertLayers(layers=1, experts=len(chance), experts_per_token=1, expert_bytes=1.0)
    assert float(np.sum(1 - (1 - chance) ** tokens)) <= group.expected_experts(tokens) * (1 + 1e-12)


def test_no_tokens_read_no_experts() -> None:
    """Tests that a pass without tokens reads no expert, and that a dense model reads the same for
    any number.
    """
    group = ExpertLayers(layers=3, experts=4, experts_per_token=2, expert_bytes=5.0)
    assert WeightReads(dense_bytes=1.0, experts=(group,)).limits(0) == (1.0, 1.0)
    assert {WeightReads(dense_bytes=7.0).bytes(tokens) for tokens in (0, 1, 99)} == {7.0}


def test_refusals() -> None:
    """Tests that sizes outside their domain, more experts per token than there are, and numbers of
    tokens that are not whole are refused by name.
    """
    good = {"layers": 1, "experts": 4, "experts_per_token": 2, "expert_bytes": 1.0}
    for name in good:
        with pytest.raises(InvalidInput, match=rf"{name}: expected"):
            ExpertLayers(**(good | {name: -1}))  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match=r"experts_per_token: expected at most experts = 4, got 5"
    ):
        ExpertLayers(**(good | {"experts_per_token": 5}))  # type: ignore[arg-type]
    for tokens in (-1, 1.5):
        with pytest.raises(InvalidInput, match="tokens: expected an integer >= 0"):
            ExpertLayers(**good).expected_experts(tokens)  # type: ignore[arg-type]
