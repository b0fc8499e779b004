"""Hypothesis strategies for `prompt-chunking` problems and plans.

The problems cover all modes, limits on the number of chunks, grids for chunk boundaries, steep and
flat cloud delays, and resources that take no time.
"""

from __future__ import annotations

from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem

MS = 2.0**-10


@st.composite
def cloud_delays(draw: st.DrawFn) -> dict[str, list[float]]:
    """Draw a nondecreasing piecewise linear cloud delay with two to five breakpoints.

    Steep and flat segments are common.
    """
    gaps = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    rises = draw(lists_of(st.sampled_from((0, 0, 1, 2, 8, 40)), len(gaps)))
    tokens = [float(draw(st.integers(0, 6)))]
    seconds = [draw(st.integers(0, 40)) * MS]
    for gap, rise in zip(gaps, rises, strict=True):
        tokens.append(tokens[-1] + gap)
        seconds.append(seconds[-1] + rise * MS)
    return {"tokens": tokens, "seconds": seconds}


@st.composite
def problems(
    draw: st.DrawFn, tokens: tuple[int, int] = (1, 9), restricted: bool = True, plain: bool = False
) -> PromptChunkingProblem:
    """Draw a valid problem whose times are multiples of 2^-10 s, so that ties are common.

    If `restricted` is set, the problem may limit the number of chunks and restrict chunk boundaries
    to a grid. If `plain` is set, all optional fields have their default values.
    """
    data = {
        "format": "specopt/1",
        "kind": PromptChunkingProblem.kind,
        "prompt_tokens": draw(st.integers(*tokens)),
        "bytes_per_token": draw(st.sampled_from((0.0, 1.0, 1.0, 1.0, 8.0))),
        "uplink_bytes_per_second": draw(st.sampled_from((64.0, 128.0, 200.0, 1000.0))),
        "downlink_bytes_per_second": draw(st.sampled_from((64.0, 128.0, 333.0, 1000.0))),
        "cloud_delay": draw(cloud_delays()),
        "background_tokens": draw(st.sampled_from((0.0, 1.0, 3.5, 10.0))),
        "pipeline_length": draw(st.sampled_from((1, 1, 2, 4, 7))),
    }
    if not plain:
        few = st.sampled_from((0, 0, 1, 3, 10)).map(lambda count: count * MS)
        for name in (
            "local_overhead_seconds",
            "local_seconds_per_token",
            "message_overhead_seconds",
            "link_latency_seconds",
            "head_seconds",
        ):
            data[name] = draw(few)
        data["wait"] = draw(st.sampled_from(("serial", "overlap", "none")))
        data["download"] = draw(st.sampled_from(("all", "last")))
        if restricted:
            if draw(st.booleans()):
                data["max_chunks"] = draw(st.integers(1, 6))
            if draw(st.booleans()):
                data["grid_tokens"] = draw(st.integers(1, 5))
    return PromptChunkingProblem.from_dict(data)


@st.composite
def plans(
    draw: st.DrawFn, problem: PromptChunkingProblem, restricted: bool = True
) -> PromptChunkingPlan:
    """Draw a plan whose chunk sizes sum to the length of the prompt.

    If `restricted` is set, the plan also respects the grid and the limit on the number of chunks.
    """
    N = problem.prompt_tokens
    grid = problem.grid_tokens or 1 if restricted else 1
    most = min(9, problem.max_chunks or 9) if restricted else 9
    inner = range(grid, N, grid)
    ends = sorted(draw(st.sets(st.sampled_from(inner), max_size=most - 1))) if inner else []
    chunks = [b - a for a, b in zip([0, *ends], [*ends, N], strict=True)]
    return PromptChunkingPlan.from_dict({"chunks": chunks})
