"""A prompt-chunking problem as arrays for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Ints
from specopt.models.prompt_chunking.problem import PromptChunkingProblem

SECONDS_PER_TOKEN = 1e-7
"""Time to build the arrays per prompt token, in seconds, with a margin for slow machines."""


@dataclass(frozen=True)
class Prepared:
    """A prompt-chunking problem as arrays for the kernels.

    Parameters
    ----------
    prompt
        Kernel record that contains the parameters and two arrays. The first array, with shape (M +
        1,), contains the number of tokens before each boundary. The boundaries are the start of the
        prompt and the possible chunk ends. The second array, with shape (N + 1,), contains the
        stage time g(mu + x) / P of a chunk of x tokens, in seconds.
    most
        Maximum number of chunks of any plan.
    """

    prompt: Any
    most: int

    @property
    def cells(self) -> int:
        """Number M of possible chunk ends."""
        return len(self.prompt.position) - 1

    def chunks(self, bounds: Ints) -> Ints:
        """Return the number of tokens in each chunk.

        `bounds` contains the indices of all boundaries, including the start and the end of the
        prompt.
        """
        tokens: Ints = self.prompt.position[bounds]
        return np.diff(tokens)


def prepare(problem: PromptChunkingProblem) -> Prepared:
    """Convert a prompt-chunking problem to arrays in O(N) time."""
    from specopt.solvers.prompt_chunking.kernels.play import Prompt

    N, grid, P = problem.prompt_tokens, problem.grid_tokens or 1, problem.pipeline_length
    g, mu = problem.cloud_delay, problem.background_tokens
    tokens = mu + np.arange(N + 1)
    delay = np.interp(tokens, g.tokens, g.seconds)
    beyond = np.searchsorted(tokens, g.tokens[-1])
    delay[beyond:] = g.seconds[-2] + g.slopes[-1] * (tokens[beyond:] - g.tokens[-2])
    position = np.arange(0, N + grid, grid, dtype=np.int64)
    position[-1] = N
    wait = g.at(mu) / P
    prompt = Prompt(
        position,
        delay / P,
        up_token=problem.bytes_per_token / problem.uplink_bytes_per_second,
        down_token=problem.bytes_per_token / problem.downlink_bytes_per_second,
        message=problem.message_overhead_seconds,
        latency=problem.link_latency_seconds,
        wait_arrival=wait if problem.wait == "overlap" else 0.0,
        wait_start=wait if problem.wait == "serial" else 0.0,
        device_chunk=problem.local_overhead_seconds,
        device_token=problem.local_seconds_per_token,
        head=problem.head_seconds,
        stages=P,
        last=problem.download == "last",
        stop=np.zeros(1, np.uint8),
    )
    return Prepared(prompt, problem.chunk_limit)


def work_space(prepared: Prepared, most: int) -> Any:
    """Return work space for kernels that search for plans with at most `most` chunks."""
    from specopt.solvers.prompt_chunking.kernels.play import Work

    return Work(
        states=np.empty((most + 2, prepared.prompt.stages + 2)),
        state=np.empty(prepared.prompt.stages + 1),
        weights=np.empty(most),
        current=np.empty(prepared.cells + 2, np.int64),
        trial=np.empty(prepared.cells + 2, np.int64),
        left=np.zeros(1, np.int64),
    )
