"""The judge of prompt chunking against exact rational arithmetic, and what the problem refuses."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers.growth import growth
from hypothesis import given
from hypothesis import strategies as st
from oracles import prompt_chunking as naive

from specopt import InvalidInput, PromptChunkingPlan, PromptChunkingProblem
from specopt.kinds.prompt_chunking.strategies import plans
from specopt.kinds.prompt_chunking.strategies import problems as prompt_chunkings

BASE: dict[str, Any] = {
    "format": "specopt/1",
    "kind": "prompt-chunking",
    "prompt_tokens": 10,
    "bytes_per_token": 100.0,
    "uplink_bytes_per_second": 1000.0,
    "downlink_bytes_per_second": 2000.0,
    "cloud_delay": {"tokens": [0.0, 10.0], "seconds": [0.2, 0.4]},
    "background_tokens": 2.0,
    "pipeline_length": 2,
}


def problem(**fields: Any) -> PromptChunkingProblem:
    """A prompt of ten tokens, with some fields replaced."""
    return PromptChunkingProblem.from_dict(BASE | fields)


def plan(*chunks: int) -> PromptChunkingPlan:
    """A plan."""
    return PromptChunkingPlan(chunks=np.array(chunks, dtype=np.int64))


@given(prompt_chunkings(tokens=(1, 30)), st.data())
def test_judge_equals_naive(problem: PromptChunkingProblem, data: st.DataObject) -> None:
    """Tests that the objective is the oracle's in every mode, and the verdict the text's."""
    chunks = data.draw(plans(problem, restricted=False)).chunks.tolist()
    evaluation = problem.evaluate(plan(*chunks))
    assert evaluation.objective == pytest.approx(
        float(naive.first_token(problem.to_dict(), chunks)), rel=1e-12
    )
    assert sum(evaluation.terms.values()) == pytest.approx(evaluation.objective, rel=1e-12)
    allowed = len(chunks) <= (problem.max_chunks or 99) and all(
        x % (problem.grid_tokens or 1) == 0 for x in chunks[:-1]
    )
    assert (problem.violations(plan(*chunks)) == []) == allowed


def test_by_hand() -> None:
    """Tests that two chunks of a serial pipeline of two take what the steps by hand give.

    g(2) = 0.24, w = 0.12; g(2 + 5) = 0.34, 0.17 per stage. Uploads end at 0.5 and 1.0. Stage 1: 0.5
    + 0.12 + 0.17 = 0.79, then 1.0 + 0.29 = 1.29; stage 2: 0.96, 1.46. Downloads of 0.25: 1.21, then
    1.71.
    """
    evaluation = problem().evaluate(plan(5, 5))
    assert evaluation.objective == pytest.approx(1.71)
    assert evaluation.terms == pytest.approx(
        {
            "upload_seconds": 1.0,
            "cloud_seconds": 0.46,
            "download_seconds": 0.25,
            "head_seconds": 0.0,
        }
    )


def test_timeline() -> None:
    """Tests that each resource serves one chunk at a time, in order, and each chunk one resource
    after the other.
    """
    times = problem(local_overhead_seconds=0.1, link_latency_seconds=0.2).timeline(plan(2, 5, 3))
    assert [chunk.arrive for chunk in times] == pytest.approx(
        [chunk.upload[1] + 0.2 for chunk in times], rel=1e-15
    )
    assert [chunk.tokens for chunk in times] == [2, 5, 3]
    for chunk in times:
        jobs = [chunk.local, chunk.upload, *chunk.stages, chunk.download]
        assert all(begin <= end for begin, end in jobs)
        assert all(left[1] <= right[0] + 1e-12 for left, right in pairwise(jobs))
    for before, after in pairwise(times):
        assert before.upload[1] <= after.upload[0]
        assert all(
            left[1] <= right[0] for left, right in zip(before.stages, after.stages, strict=True)
        )
        assert before.download[1] <= after.download[0]


@pytest.mark.parametrize("stages", [2, 3, 7, 40])
@pytest.mark.parametrize("seed", range(6))
def test_stages_by_the_longest_way(stages: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the judge's time after many stages is that of playing one stage after the
    other.
    """
    monkeypatch.setattr("specopt.models.prompt_chunking.problem.MAX_STAGES_IN_TURN", 1)
    random = np.random.default_rng(seed)
    chunks = random.integers(1, 60, size=40)
    busy = {"tokens": [0.0, 20.0, 21.0, 60.0], "seconds": [0.01, 0.02, 0.3, 0.5]}
    case = problem(
        prompt_tokens=int(chunks.sum()),
        pipeline_length=stages,
        cloud_delay=busy,
        uplink_bytes_per_second=10.0 ** (seed + 1),
        wait=("serial", "overlap", "none")[seed % 3],
    )
    *_, last = case.timeline(plan(*chunks.tolist()))
    terms = case.evaluate(plan(*chunks.tolist())).terms
    assert terms["upload_seconds"] + terms["cloud_seconds"] == pytest.approx(
        last.stages[-1][1], rel=1e-12
    )


def test_many_stages_cost_the_judge_nothing() -> None:
    """Tests that ten million stages are judged as one is, not in a time that grows with them."""
    few, some, many = (problem(pipeline_length=size) for size in (2, 1_000_000, 10_000_000))
    ten = plan(*[1] * 10)
    assert growth(lambda: few.evaluate(ten), lambda: many.evaluate(ten)) < 50
    assert many.evaluate(ten).objective == pytest.approx(some.evaluate(ten).objective, rel=1e-3)


@pytest.mark.parametrize(
    ("fields", "chunks", "message"),
    [
        ({}, (5, 4), "chunks: the sum is 9, but the prompt has 10 tokens"),
        ({"max_chunks": 2}, (2, 2, 6), "chunks: expected at most 2 entries, got 3"),
        ({"grid_tokens": 4}, (4, 5, 1), "chunks[1]: expected a multiple of 4 tokens, got 5"),
    ],
)
def test_violations(fields: dict[str, Any], chunks: tuple[int, ...], message: str) -> None:
    """Tests that sum, cap and grid are judged, one sentence each."""
    assert problem(**fields).violations(plan(*chunks)) == [message]


def test_the_last_chunk_is_free() -> None:
    """Tests that the grid does not bind the last chunk, and one that no chunk can end at but the
    last.
    """
    assert problem(grid_tokens=4).violations(plan(4, 4, 2)) == []
    assert problem(grid_tokens=64).violations(plan(10)) == []
    assert problem(grid_tokens=4).chunk_limit == 3
    assert problem(grid_tokens=4, max_chunks=2).chunk_limit == 2


def test_wrong_sums_have_no_objective() -> None:
    """Tests that chunks of another prompt are refused."""
    with pytest.raises(InvalidInput, match="chunks: the sum is 3"):
        problem().evaluate(plan(1, 2))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"uplink_bytes_per_second": 3e-308}, "uplink_bytes_per_second: expected a finite time"),
        (
            {"cloud_delay": {"tokens": [0.0], "seconds": [0.1]}},
            "cloud_delay.tokens: expected 2 or more",
        ),
        (
            {"cloud_delay": {"tokens": [0.0, 0.0], "seconds": [0.1, 0.2]}},
            r"cloud_delay.tokens\[1\]: expected more",
        ),
        (
            {"cloud_delay": {"tokens": [0.0, 1.0], "seconds": [0.2, 0.1]}},
            r"cloud_delay.seconds\[1\]: expected no less",
        ),
        (
            {"cloud_delay": {"tokens": [0.0, 1.0, 2.0], "seconds": [0.2, 0.3]}},
            "cloud_delay.seconds: expected 3 entries",
        ),
        (
            {"cloud_delay": {"tokens": [0.0, 1e-300], "seconds": [0.0, 1e300]}},
            "cloud_delay.tokens: .*slopes",
        ),
        (
            {"cloud_delay": {"tokens": [0.0, 1.0], "seconds": [0.0, 1e308]}},
            "cloud_delay: expected finite times",
        ),
    ],
)
def test_refusals(fields: dict[str, Any], message: str) -> None:
    """Tests that a field outside its domain is named, with what was expected and what came."""
    with pytest.raises(InvalidInput, match=message):
        problem(**fields)
