"""Steps and candidates of parallel drafting against a wider enumeration."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.device_speculation import ParallelDrafting, RoundCost
from specopt.solvers.drafting.parallel_drafting import best_parallel_drafting, equation_6

UNIT = st.floats(0.0, 1.0)


@st.composite
def settings(draw: st.DrawFn) -> ParallelDrafting:
    """A device and its drafts; costs of zero are common."""
    law = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5)))
    shares = np.array(draw(st.lists(st.floats(0.0, 0.2), min_size=1, max_size=4)))
    small = st.sampled_from([0.0, 0.001, 0.01])
    return ParallelDrafting(
        cost=RoundCost(
            draft_seconds=draw(st.floats(0.001, 0.05)), uplink_bytes_per_second=7.5e6, downlink_bytes_per_second=12.5e6,
            bytes_per_token=8192.0, cloud_seconds=draw(st.floats(0.0, 0.1)), fixed_seconds=0.005,
        ),
        drafted=law / law.sum(), gained_tokens=2.0, reach=draw(UNIT), candidates=shares,
        seconds_per_candidate=draw(st.sampled_from([0.0, 0.1, 1.0])), start_seconds=draw(small),
        step_seconds=draw(small),
    )  # fmt: skip


@given(settings())
def test_nothing_is_faster(setting: ParallelDrafting) -> None:
    """Tests that no steps, well beyond the longest draft, and no k are faster, nor is no parallel drafting."""
    found = best_parallel_drafting(setting)
    pairs = [(0, 0)] + [(s, k) for s in range(1, 12) for k in range(1, len(setting.candidates) + 1)]
    assert found.tbt_seconds == min(setting.tbt_seconds(s, k) for s, k in pairs)
    assert found.tbt_seconds == setting.tbt_seconds(found.steps, found.candidates)
    for k in range(1, len(setting.candidates) + 1):
        assert found.tbt_seconds <= equation_6(setting, k).tbt_seconds


def test_dear_candidates_are_left_out() -> None:
    """Tests that one candidate is best when others double a step's time, and none when steps only cost."""
    cost = RoundCost(
        draft_seconds=0.01, uplink_bytes_per_second=1e7, downlink_bytes_per_second=1e7, bytes_per_token=0.0,
        cloud_seconds=0.02,
    )  # fmt: skip
    base = {"cost": cost, "drafted": np.array([0.0, 1.0]), "gained_tokens": 2.0, "candidates": np.array([0.5, 0.05])}
    dear = ParallelDrafting(**base, reach=1.0, seconds_per_candidate=5.0)  # type: ignore[arg-type]
    assert best_parallel_drafting(dear).candidates == 1
    assert best_parallel_drafting(dear).steps == 2
    assert equation_6(dear, 1).steps == 2
    assert equation_6(dear, 2).steps == 0
    useless = ParallelDrafting(**base, reach=0.0, step_seconds=0.001)  # type: ignore[arg-type]
    assert (best_parallel_drafting(useless).steps, best_parallel_drafting(useless).candidates) == (0, 0)
