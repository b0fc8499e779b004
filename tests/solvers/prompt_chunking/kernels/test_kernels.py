"""The kernels of prompt chunking against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from specopt import PromptChunkingPlan, PromptChunkingProblem
from specopt.kinds.prompt_chunking.strategies import plans
from specopt.kinds.prompt_chunking.strategies import problems as prompt_chunkings
from specopt.solvers.prompt_chunking.kernels import families, play, search
from specopt.solvers.prompt_chunking.prepare import prepare


@given(prompt_chunkings(tokens=(1, 40), restricted=False), st.data())
def test_play_is_the_judge(problem: PromptChunkingProblem, data: st.DataObject) -> None:
    """Tests that the compiled event model gives the judge's number for any plan."""
    chunks = data.draw(plans(problem)).chunks
    bounds = np.concatenate(([0], np.cumsum(chunks)))
    prepared = prepare(problem)
    value = play.play(prepared.prompt, bounds, len(chunks), np.empty(prepared.prompt.stages + 1))
    assert value == pytest.approx(
        problem.evaluate(PromptChunkingPlan(chunks=chunks)).objective, rel=1e-14
    )
    assert prepared.chunks(bounds).tolist() == chunks.tolist()


@pytest.mark.parametrize("first", [2, 3])
def test_the_largest_chunk_that_meets_a_deadline(first: int) -> None:
    """Tests that the first of two chunks is as large as the deadline allows: queues of the stages
    count as they are.
    """
    problem = PromptChunkingProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": "prompt-chunking",
            "prompt_tokens": 4,
            "bytes_per_token": 0.0,
            "uplink_bytes_per_second": 1.0,
            "downlink_bytes_per_second": 1.0,
            "background_tokens": 0.0,
            "cloud_delay": {"tokens": [0.0, 10.0], "seconds": [0.2, 10.2]},
            "pipeline_length": 4,
            "wait": "serial",
        }
    )
    deadline = problem.evaluate(
        PromptChunkingPlan(chunks=np.array([first, 4 - first]))
    ).objective * (1 + 1e-12)
    bounds = np.empty(5, dtype=np.int64)
    count = search.by_deadline(2, prepare(problem).prompt, deadline, 1.0, np.empty((2, 5)), bounds)
    assert bounds[: count + 1].tolist() == [0, first, 4]


@given(st.integers(1, 12), st.floats(0.02, 50.0), st.integers(0, 200))
def test_spread(chunks: int, ratio: float, more: int) -> None:
    """Tests that geometric boundaries increase, end at the end, and follow the ratio within
    rounding.
    """
    M = chunks + more
    bounds = np.zeros(chunks + 1, dtype=np.int64)
    families.spread(chunks, M, 0, 1.0, ratio, np.empty(chunks), bounds)
    assert bounds[0] == 0 and bounds[-1] == M
    assert np.all(np.diff(bounds) >= 1)
    exact = M * np.cumsum(ratio ** np.arange(chunks)) / np.sum(ratio ** np.arange(chunks))
    if np.all(np.diff(exact, prepend=0.0) >= 2):
        assert np.all(np.abs(bounds[1:] - exact) <= 0.5 + 1e-9)


def test_kicks_change_how_many_chunks_there_are() -> None:
    """Tests that half of the random plans keep the number of chunks, the others have one less or
    one more if allowed.

    That is eight chunks of ten cells; three standard deviations of 400 plans are 0.075.
    """
    bounds, out = np.arange(0, 90, 10), np.empty(12, dtype=np.int64)
    kick = njit(search.kick)
    for most, shares in ((9, (0.25, 0.5, 0.25)), (8, (0.25, 0.75, 0.0))):
        counts = []
        for number in range(400):
            counts.append(kick(number, 8, most, bounds, out))
            plan = out[: counts[-1] + 1]
            assert (plan[0], plan[-1]) == (0, 80) and (np.diff(plan) >= 1).all()
        assert [np.mean(np.equal(counts, count)) for count in (7, 8, 9)] == pytest.approx(
            shares, abs=0.075
        )
