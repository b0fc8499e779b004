"""The timeline of chunks: what is drawn, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from specopt.instances.prompt_chunking.workload import FIGURE_1
from specopt.kinds.prompt_chunking.view import chunk_timeline, timeline_bars
from specopt.models.errors import InvalidInput
from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem

PROBLEM = PromptChunkingProblem(
    prompt_tokens=351,
    bytes_per_token=8192.0,
    uplink_bytes_per_second=7.5e6,
    downlink_bytes_per_second=12.5e6,
    cloud_delay=FIGURE_1,
    background_tokens=10.0,
    pipeline_length=3,
)


def plan(*chunks: int) -> PromptChunkingPlan:
    """A plan of some chunks."""
    return PromptChunkingPlan(chunks=np.array(chunks))


def test_bars_of_a_chunk() -> None:
    """Tests that a chunk has a bar on each resource, in order, and on the device only if that takes
    time.
    """
    bars = timeline_bars(PROBLEM.timeline(plan(200, 151)))
    assert [[row for row, _, _ in own] for own in bars] == [
        ["upload", "GPU 1", "GPU 2", "GPU 3", "download"]
    ] * 2
    assert bars[0][0][1:] == pytest.approx((0.0, 200 * 8192 / 7.5e6))
    assert bars[1][0][1] == bars[0][0][2]
    assert bars[1][-1][2] == PROBLEM.evaluate(plan(200, 151)).objective
    for own in bars:
        assert all(after[1] >= before[2] - 1e-12 for before, after in itertools.pairwise(own))


def test_picture_has_a_panel_per_plan() -> None:
    """Tests that titles, the common axis and the number of bars are right."""
    one, two = chunk_timeline(PROBLEM, {"whole": plan(351), "halves": plan(176, 175)}).charts
    assert one.title.startswith("whole: 1 chunk, first token after")
    assert two.title.startswith("halves: 2 chunks")
    first, second = (
        chart.spec["layer"][0]["encoding"]["x"]["scale"]["domain"] for chart in (one, two)
    )
    assert first == second
    assert (len(one.rows), len(two.rows)) == (5, 10)


def test_bad_plans_are_refused() -> None:
    """Tests that no plan at all and a plan of another prompt are refused."""
    with pytest.raises(InvalidInput, match="plans"):
        chunk_timeline(PROBLEM, {})
    with pytest.raises(InvalidInput, match="the sum is 350"):
        chunk_timeline(PROBLEM, {"short": plan(350)})
