"""Drafts on a device: Eq. 6 by hand, and the time of a round by simulation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.device_speculation import (
    ParallelDrafting,
    RoundCost,
    parallel_steps,
)
from specopt.models.errors import InvalidInput

COST = RoundCost(
    draft_seconds=0.008, uplink_bytes_per_second=7.5e6, downlink_bytes_per_second=12.5e6, bytes_per_token=8192.0,
    cloud_seconds=0.027, cloud_seconds_per_token=1e-4, fixed_seconds=0.012,
)  # fmt: skip
SETTING = ParallelDrafting(
    cost=COST, drafted=np.array([0.5, 0.3, 0.2]), gained_tokens=2.0, reach=0.7, candidates=np.array([0.5, 0.2, 0.1]),
    seconds_per_candidate=0.25, start_seconds=0.001, step_seconds=0.0002,
)  # fmt: skip


@given(st.integers(1, 9), st.floats(1e6, 2e7), st.floats(1e6, 2e7), st.floats(0.0, 0.1), st.floats(1e-3, 0.1))
def test_equation_6_takes_what_fits(tokens: int, up: float, down: float, cloud: float, gamma: float) -> None:
    """Tests that lambda steps fit into the verification and one more does not."""
    steps = parallel_steps(
        tokens, bytes_per_token=8192.0, uplink_bytes_per_second=up, downlink_bytes_per_second=down,
        cloud_seconds=cloud, draft_seconds=gamma,
    )  # fmt: skip
    spent = tokens * 8192.0 / up + cloud + tokens * 8192.0 / down
    assert steps * gamma <= spent * (1 + 1e-12)
    assert (steps + 1) * gamma > spent * (1 - 1e-12)


def test_round_by_hand() -> None:
    """Tests that the time until three tokens are verified is right by hand."""
    assert COST.verify_seconds(3) == pytest.approx(0.012 + 0.027 + 3 * (8192 / 7.5e6 + 8192 / 12.5e6 + 1e-4))


@pytest.mark.parametrize(("steps", "k"), [(0, 0), (1, 1), (2, 3), (7, 2)])
def test_round_with_parallel_drafting_is_a_mean(steps: int, k: int) -> None:
    """Tests that the expected time of a round is the mean of drawn rounds."""
    random = np.random.default_rng(7)
    count = 20000
    total = 0.0
    for _ in range(count):
        tokens = 1 + int(random.choice(3, p=SETTING.drafted))
        # the next draft is begun if the last token is reached and among the candidates
        hit = steps > 0 and random.random() < 0.7 and random.random() < float(SETTING.candidates[:k].sum())
        drafted = max(0, tokens - steps) if hit else tokens
        verify = 0.012 + 0.027 + tokens * (8192 / 7.5e6 + 8192 / 12.5e6 + 1e-4)
        busy = 0.001 + steps * 0.008 * (1 + 0.25 * (k - 1)) if steps else 0.0
        total += drafted * 0.008 + max(verify, busy) + steps * 0.0002
    assert SETTING.round_seconds(steps, k) == pytest.approx(total / count, rel=0.01)
    assert SETTING.tbt_seconds(steps, k) == SETTING.round_seconds(steps, k) / 2.0


def test_free_candidates_never_hurt() -> None:
    """Tests that with free steps and candidates more of either never makes a round longer, until steps do not fit."""
    free = dataclasses.replace(SETTING, seconds_per_candidate=0.0, start_seconds=0.0, step_seconds=0.0)
    assert free.hit_probability(2) == pytest.approx(0.7 * 0.7)
    for steps in range(3):
        for k in range(1, 3):
            assert free.round_seconds(steps, k + 1) <= free.round_seconds(steps, k)
            assert free.round_seconds(steps + 1, k) <= free.round_seconds(steps, k)


def test_wrong_values_are_refused() -> None:
    """Tests that messages name the field."""
    with pytest.raises(InvalidInput, match="drafted: expected a sum of 1"):
        dataclasses.replace(SETTING, drafted=np.array([0.5]))
    with pytest.raises(InvalidInput, match="candidates: expected a sum of at most 1"):
        dataclasses.replace(SETTING, candidates=np.array([0.7, 0.4]))
    with pytest.raises(InvalidInput, match=r"reach: expected float <= 1\.0"):
        dataclasses.replace(SETTING, reach=1.5)
    with pytest.raises(InvalidInput, match="steps"):
        SETTING.round_seconds(-1, 1)
    with pytest.raises(InvalidInput, match="k: expected an integer from 0 to 3"):
        SETTING.round_seconds(1, 4)
    with pytest.raises(InvalidInput, match="draft_seconds"):
        parallel_steps(
            1, bytes_per_token=1.0, uplink_bytes_per_second=1.0, downlink_bytes_per_second=1.0, cloud_seconds=1.0,
            draft_seconds=0.0,
        )  # fmt: skip
