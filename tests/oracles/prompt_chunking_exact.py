"""Independent routes to the least time to first token of a chunked prompt; imports nothing of ours.

A problem is a mapping as in its JSON form. Both routes play the event model with the state (local,
up, f_1, ..., f_P, down): one over all compositions, one over the non-dominated states of each
prefix, without any bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.prompt_chunking import line, plans

Problem = dict[str, Any]
State = tuple[float, ...]


def delay(problem: Problem, tokens: float) -> float:
    """Return g(tokens)."""
    return float(line(problem["cloud_delay"]["tokens"], problem["cloud_delay"]["seconds"], tokens))


def after_chunk(problem: Problem, state: State, tokens: int, is_last: bool) -> State:
    """Return (local, up, f_1, ..., f_P, down) after one more chunk."""
    P, mu, A = problem["pipeline_length"], problem["background_tokens"], problem["bytes_per_token"]
    latency = problem.get("link_latency_seconds", 0.0)
    w = delay(problem, mu) / P
    local, up, *f, down = state
    local += (
        problem.get("local_overhead_seconds", 0.0)
        + problem.get("local_seconds_per_token", 0.0) * tokens
    )
    up = (
        max(local, up)
        + problem.get("message_overhead_seconds", 0.0)
        + tokens * A / problem["uplink_bytes_per_second"]
    )
    arrive = up + latency
    start = {
        "serial": max(arrive, f[0]) + w,
        "overlap": max(arrive + w, f[0]),
        "none": max(arrive, f[0]),
    }[problem.get("wait", "serial")]
    busy = delay(problem, mu + tokens) / P
    f[0] = start + busy
    for q in range(1, P):
        f[q] = max(f[q - 1], f[q]) + busy
    down = max(f[-1] + latency, down)
    if problem.get("download", "all") == "all":
        down += tokens * A / problem["downlink_bytes_per_second"]
    elif is_last:
        down += A / problem["downlink_bytes_per_second"]
    return (local, up, *f, down)


def first_token_seconds(problem: Problem, chunks: list[int]) -> float:
    """Return the time to first token."""
    state: State = (0.0,) * (3 + problem["pipeline_length"])
    for k, tokens in enumerate(chunks):
        state = after_chunk(problem, state, tokens, k == len(chunks) - 1)
    return state[-1] + float(problem.get("head_seconds", 0.0))


def best_composition(problem: Problem) -> float:
    """Return the least time to first token over all feasible compositions."""
    return min(first_token_seconds(problem, chunks) for chunks in plans(problem))


def best_by_prefixes(problem: Problem, slack: float = 1e-13) -> float:
    """Return the least time to first token from the non-dominated states of each prefix, with
    counts if there is a cap.

    Exact but for `slack` seconds per chunk, which spares states that rounding alone tells apart.
    """
    N, grid = problem["prompt_tokens"], problem.get("grid_tokens") or 1
    ends = [*range(grid, N, grid), N]
    cap = problem.get("max_chunks")
    states: dict[int, list[tuple[int, State]]] = {
        0: [(0, (0.0,) * (3 + problem["pipeline_length"]))]
    }
    for j, end in enumerate(ends):
        found: list[tuple[int, State]] = []
        for start in [0, *ends[:j]]:
            for count, state in states[start]:
                if cap is None or count < cap:
                    found.append((count + 1, after_chunk(problem, state, end - start, end == N)))
        found.sort(key=lambda entry: sum(entry[1]))
        kept: list[tuple[int, State]] = []
        table = np.empty((len(found), problem["pipeline_length"] + 4))
        for count, state in found:
            row = np.array([count if cap is not None else 0, *state])
            if not (table[: len(kept)] <= row + slack).all(axis=1).any():
                table[len(kept)] = row
                kept.append((count, state))
        states[end] = kept
    return min(state[-1] for _, state in states[N]) + float(problem.get("head_seconds", 0.0))
