"""A problem as the arrays that the kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.models.prompt_chunking import PromptChunkingProblem


@dataclass(frozen=True)
class Prepared:
    """Arrays of a problem.

    Parameters
    ----------
    position
        Tokens before each place where a chunk may end, from 0 to N, shape (M + 1,).
    stage
        g(mu + x) / P of a chunk of x tokens, shape (N + 1,).
    cost
        See `COSTS` of the kernels, shape (9,).
    stages
        P.
    last
        Whether the deep state of the last token alone comes back.
    most
        The most chunks of any plan.
    """

    position: Ints
    stage: Floats
    cost: Floats
    stages: int
    last: bool
    most: int

    @property
    def cells(self) -> int:
        """M, the number of places where a chunk may end."""
        return len(self.position) - 1

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What every kernel takes."""
        return self.position, self.stage, self.cost, self.stages, self.last

    def chunks(self, bounds: Ints) -> Ints:
        """Return the tokens of each chunk from the indices of all boundaries, the start and the end included."""
        found: Ints = np.diff(self.position[bounds])
        return found


def prepare(problem: PromptChunkingProblem) -> Prepared:
    """Return the arrays of a problem; O(N)."""
    N, grid, P = problem.prompt_tokens, problem.grid_tokens or 1, problem.pipeline_length
    g, mu = problem.cloud_delay, problem.background_tokens
    tokens = mu + np.arange(N + 1)
    piece = np.clip(np.searchsorted(g.tokens, tokens, side="left") - 1, 0, len(g.tokens) - 2)
    delay = g.seconds[piece] + g.slopes[piece] * np.maximum(tokens - g.tokens[piece], 0.0)
    wait = g.at(mu) / P
    cost = np.array(
        [
            problem.bytes_per_token / problem.uplink_bytes_per_second,
            problem.bytes_per_token / problem.downlink_bytes_per_second,
            problem.message_overhead_seconds,
            problem.link_latency_seconds,
            wait if problem.wait == "overlap" else 0.0,
            wait if problem.wait == "serial" else 0.0,
            problem.local_overhead_seconds,
            problem.local_seconds_per_token,
            problem.head_seconds,
        ]
    )
    position = np.append(np.arange(0, N, grid), N).astype(np.int64)
    return Prepared(position, delay / P, cost, P, problem.download == "last", problem.most_chunks)
