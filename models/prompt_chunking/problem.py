"""Prompt chunking: split a long prompt into chunks to minimise the time to first token.

The model is that of HAT (paper 4, Sec. 3.3). The device holds the first and last layers of a large
language model, and the cloud holds the layers between them. The device computes the shallow hidden
states of its prompt and uploads them one chunk at a time. The cloud's pipeline of P stages
processes each chunk in a batch with tokens from other devices, and returns the deep hidden states.
While a chunk is uploaded, earlier chunks are processed and downloaded. Small chunks therefore allow
more overlap, but each chunk requires a message and a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    NonNegative,
    Positive,
    PositiveInt,
    TokenCount,
    TokenCounts,
    required,
)
from specopt.models.pass_time import CloudDelay
from specopt.models.problem import Evaluation, Plan, Problem

Download = Literal["all", "last"]

MAX_STAGES_IN_TURN = 32
"""Maximum number of pipeline stages that the judge processes one at a time. If there are more
stages, the judge uses a closed form.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptChunkingPlan(Plan):
    """A plan that splits a prompt into chunks.

    Parameters
    ----------
    chunks
        Number of tokens in each chunk, in the order of the prompt. The sum must equal the prompt
        length.
    """

    chunks: TokenCounts = required()


@dataclass(frozen=True)
class ChunkTimes:
    """Times at which a chunk uses each resource, in seconds since the start of the request.

    Parameters
    ----------
    tokens
        Number of tokens in the chunk.
    local
        Start and end of the computation on the device.
    upload
        Start and end of the upload, including the message overhead.
    arrive
        Arrival time in the cloud.
    stages
        Start and end of the processing on each of the P stages. With wait type "serial", the chunk
        waits before the processing on the first stage starts.
    download
        Start and end of the download of the deep hidden states.
    """

    tokens: int
    local: tuple[float, float]
    upload: tuple[float, float]
    arrive: float
    stages: tuple[tuple[float, float], ...]
    download: tuple[float, float]


class _ChunkEvents(NamedTuple):
    """Times at which one chunk uses each resource, in seconds since the start of the request.

    `start` is the time at which the first stage starts to process the chunk, `busy` is the duration
    on each stage, and `processed` is the time at which the last stage ends. All other fields have
    the same meaning as in `ChunkTimes`.
    """

    tokens: int
    local: tuple[float, float]
    upload: tuple[float, float]
    arrive: float
    start: float
    busy: float
    processed: float
    download: tuple[float, float]


class _StagesInTurn:
    """Pipeline model that visits every stage to compute when each chunk leaves the last stage."""

    def __init__(self, stages: int) -> None:
        self.free = [0.0] * stages

    def leave(self, entry: float, busy: float) -> float:
        """Return the time at which the next chunk leaves the last stage, given the time at which
        the chunk enters the first stage.
        """
        for q, free in enumerate(self.free):
            entry = max(entry, free) + busy
            self.free[q] = entry
        return entry


class _LongestWay:
    """Pipeline model that uses a closed form to compute when each chunk leaves the last stage.

    A chunk must take the same time, called `busy`, on every stage. The recursion f_q = max(f_{q-1},
    f_q of the previous chunk) + busy describes the longest path through the grid of chunks and
    stages. A path to chunk k begins when some chunk j <= k enters, at f_1(j), and each step moves
    to the next stage or to the next chunk. The path visits every chunk from j to k, and the longest
    path passes through the remaining stages with the slowest of these chunks. Its length is f_1(j)
    + sum of busy over j..k + (stages - 1) x the largest busy in j..k. Chunks j with the same
    largest value form a group, in which only the latest entry matters.
    """

    def __init__(self, stages: int) -> None:
        self.stages = stages
        self.passed = 0.0  # sum of busy so far
        self.groups: list[
            tuple[float, float, float]
        ] = []  # largest busy, latest entry, longest path so far

    def leave(self, entry: float, busy: float) -> float:
        """Return the time at which the next chunk leaves the last stage, given the time at which
        the chunk enters the first stage.
        """
        entry -= self.passed
        self.passed += busy
        while self.groups and self.groups[-1][0] <= busy:
            entry = max(entry, self.groups.pop()[1])
        longest = entry + (self.stages - 1) * busy
        if self.groups:
            longest = max(longest, self.groups[-1][2])
        self.groups.append((busy, entry, longest))
        return self.passed + longest


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptChunkingProblem(Problem[PromptChunkingPlan]):
    """Choose a prompt's chunk sizes to minimise the time to first token (paper 4, Sec. 3.3).

    Parameters
    ----------
    prompt_tokens
        Number N of tokens to prefill.
    bytes_per_token
        Size A of a token's hidden state, in bytes.
    uplink_bytes_per_second
        Uplink rate beta_up, in bytes per second.
    downlink_bytes_per_second
        Downlink rate beta_down, in bytes per second.
    cloud_delay
        Delay g of a batch on one GPU, in seconds, as a function of its number of tokens.
    background_tokens
        Number mu of tokens from other devices in each batch.
    pipeline_length
        Number P of GPUs in the cloud's pipeline. A batch of m tokens takes g(m) / P on each stage.
    local_overhead_seconds
        Constant a in the device's computation time a + b x for a chunk of x tokens, in seconds.
    local_seconds_per_token
        Slope b in the device's computation time a + b x for a chunk of x tokens, in seconds.
    message_overhead_seconds
        Part of each chunk's upload time that does not depend on the chunk's size, in seconds.
    link_latency_seconds
        One-way latency of the link in seconds, the same in both directions.
    head_seconds
        Computation time of the device's last layers in seconds, once per prompt.
    wait
        Way in which each chunk waits for the batch that is running, for a time w = g(mu) / P. With
        "serial", the chunk waits at the first stage before its processing starts, as Eq. 3 assumes.
        With "overlap", the wait begins at the chunk's arrival and overlaps with the processing of
        the previous chunk. With "none", chunks do not wait.
    download
        Tokens whose deep hidden states are downloaded: every token ("all") or only the last token
        ("last").
    max_chunks
        Maximum number of chunks. None means that there is no limit.
    grid_tokens
        Granularity of chunk sizes, in tokens. The size of every chunk except the last must be a
        multiple of this number. None allows any size.

    Examples
    --------
    >>> from specopt import CloudDelay, PromptChunkingProblem, solve
    >>> problem = PromptChunkingProblem(
    ...     prompt_tokens=2048,
    ...     bytes_per_token=8192,
    ...     uplink_bytes_per_second=5e6,
    ...     downlink_bytes_per_second=2e7,
    ...     cloud_delay=CloudDelay(tokens=[0, 512, 2048], seconds=[0.01, 0.03, 0.09]),
    ...     background_tokens=128,
    ...     pipeline_length=4,
    ... )
    >>> solve(problem).status.value
    'optimal'
    """

    kind = "prompt-chunking"
    plan_type = PromptChunkingPlan
    sense = "minimize"
    objective_label = "seconds to the first token"

    prompt_tokens: TokenCount
    bytes_per_token: NonNegative
    uplink_bytes_per_second: Positive
    downlink_bytes_per_second: Positive
    cloud_delay: CloudDelay
    background_tokens: NonNegative
    pipeline_length: PositiveInt
    local_overhead_seconds: NonNegative = 0.0
    local_seconds_per_token: NonNegative = 0.0
    message_overhead_seconds: NonNegative = 0.0
    link_latency_seconds: NonNegative = 0.0
    head_seconds: NonNegative = 0.0
    wait: Literal["serial", "overlap", "none"] = "serial"
    download: Download = "all"
    max_chunks: PositiveInt | None = None
    grid_tokens: PositiveInt | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("uplink_bytes_per_second", "downlink_bytes_per_second"):
            if not math.isfinite(self.bytes_per_token * self.prompt_tokens / getattr(self, name)):
                raise InvalidInput(
                    f"{name}: expected a finite time for the whole prompt, got"
                    f" {getattr(self, name):g}"
                )
        slowest = self.cloud_delay.at(self.background_tokens + self.prompt_tokens)
        per_chunk = self.local_overhead_seconds + self.message_overhead_seconds + 2 * slowest
        if not math.isfinite(self.prompt_tokens * (per_chunk + self.local_seconds_per_token)):
            raise InvalidInput(
                "cloud_delay: expected finite times, even if every token is a separate chunk"
            )

    @property
    def chunk_limit(self) -> int:
        """Maximum number of chunks in any plan. The value follows from `max_chunks`, `grid_tokens`
        and the prompt length.
        """
        grid = self.grid_tokens or 1
        return min(self.max_chunks or self.prompt_tokens, -(-self.prompt_tokens // grid))

    # ------------------------------------------------------------------ the judge

    def evaluate(self, plan: PromptChunkingPlan) -> Evaluation:
        """Return a plan's time to first token, in seconds.

        The terms of the evaluation split this time into phases of the last chunk: the time until
        its upload ends, its time in the cloud, its download, and the computation of the device's
        last layers. The link latencies are included in the time in the cloud and in the download,
        and waiting is included in the time in the cloud.
        """
        for chunk in self._events(plan):
            last = chunk
        uploaded = last.upload[1]
        processed = last.processed
        down = last.download[1]
        terms = {
            "upload_seconds": uploaded,
            "cloud_seconds": processed - uploaded,
            "download_seconds": down - processed,
            "head_seconds": self.head_seconds,
        }
        return Evaluation(down + self.head_seconds, terms)

    def timeline(self, plan: PromptChunkingPlan) -> list[ChunkTimes]:
        """Return the times at which each chunk is computed, uploaded, processed and downloaded.

        Raises
        ------
        InvalidInput
            If the chunk sizes do not sum to the prompt length.
        """
        f = [0.0] * self.pipeline_length
        times = []
        for chunk in self._events(plan):
            ready, f[0] = chunk.start, chunk.start + chunk.busy
            stages = [(ready, f[0])]
            for q in range(1, self.pipeline_length):
                ready = max(f[q - 1], f[q])
                f[q] = ready + chunk.busy
                stages.append((ready, f[q]))
            times.append(ChunkTimes(*chunk[:4], tuple(stages), chunk.download))
        return times

    def _events(self, plan: PromptChunkingPlan) -> Iterator[_ChunkEvents]:
        """Simulate a plan and yield the times of each chunk. The stages after the first are
        represented by one pipeline model.
        """
        self.expect_fit(plan)
        A = self.bytes_per_token
        P = self.pipeline_length
        mu = self.background_tokens
        w = self.cloud_delay.at(mu) / P
        local = up = down = f_1 = 0.0
        stages = _StagesInTurn(P - 1) if P <= MAX_STAGES_IN_TURN else _LongestWay(P - 1)
        left = len(plan.chunks)
        for x in map(int, plan.chunks):
            left -= 1
            begun = local
            local = local + self.local_overhead_seconds + self.local_seconds_per_token * x
            sent = max(local, up)
            up = sent + self.message_overhead_seconds + x * A / self.uplink_bytes_per_second
            arrive = up + self.link_latency_seconds
            if self.wait == "serial":
                start = max(arrive, f_1) + w
            elif self.wait == "overlap":
                start = max(arrive + w, f_1)
            else:
                start = max(arrive, f_1)
            busy = self.cloud_delay.at(mu + x) / P
            f_1 = start + busy
            f_P = stages.leave(f_1, busy)
            back = max(f_P + self.link_latency_seconds, down)
            returned = x if self.download == "all" else int(left == 0)  # tokens of the chunk
            down = back + returned * A / self.downlink_bytes_per_second
            yield _ChunkEvents(
                x, (begun, local), (sent, up), arrive, start, busy, f_P, (back, down)
            )

    def violations(self, plan: PromptChunkingPlan) -> list[str]:
        """Return messages about violated limits on the number of chunks and on chunk sizes."""
        found = super().violations(plan)
        if self.max_chunks is not None and len(plan.chunks) > self.max_chunks:
            found.append(
                f"chunks: expected at most {self.max_chunks} entries, got {len(plan.chunks)}"
            )
        if self.grid_tokens is not None:
            for position in np.flatnonzero(plan.chunks[:-1] % self.grid_tokens):
                x = plan.chunks[position]
                found.append(
                    f"chunks[{position}]: expected a multiple of {self.grid_tokens} tokens, got {x}"
                )
        return found

    def _defects(self, plan: PromptChunkingPlan) -> list[str]:
        """Return the reasons why the plan does not match this problem."""
        total = int(plan.chunks.sum())
        if total != self.prompt_tokens:
            return [f"chunks: the sum is {total}, but the prompt has {self.prompt_tokens} tokens"]
        return []
