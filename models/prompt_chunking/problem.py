"""Prompt chunking: the pieces in which a device uploads the hidden states of a long prompt (paper
4, HAT, Sec. 3.3).

The device holds the first and the last layers of a model, the cloud the layers between. The device
uploads the shallow hidden states of its prompt chunk by chunk. The cloud's pipeline of P stages
processes each chunk in a batch with the tokens of other devices and returns the deep hidden states.
While one chunk is uploaded, earlier ones are processed and downloaded. Small chunks overlap more,
but each costs a message and a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Column,
    Given,
    Ints,
    IntsLike,
    NonNegative,
    Positive,
    PositiveInt,
    TokenCount,
    required,
)
from specopt.models.pass_time import CloudDelay
from specopt.models.problem import Evaluation, Plan, Problem

Download = Literal["all", "last"]

MAX_STAGES_IN_TURN = 32
"""The judge processes up to this many stages one by one, and more stages at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptChunkingPlan(Plan):
    """Number of tokens of each chunk.

    Parameters
    ----------
    chunks
        Number of tokens of each chunk, in the order of the prompt; they sum to the prompt.
    """

    chunks: Given[Annotated[Ints, Column(TokenCount, "chunk")], IntsLike] = required()


@dataclass(frozen=True)
class ChunkTimes:
    """Times at which one chunk passes through each resource, in seconds since the start of the
    request.

    Parameters
    ----------
    tokens
        Number of tokens of the chunk.
    local
        Start and end of its computation on the device.
    upload
        Start and end of its upload, including the message overhead.
    arrive
        Arrival in the cloud.
    stages
        Start and end on each of the P stages; a serial wait precedes the start on the first one.
    download
        Start and end of the download of its deep hidden states.
    """

    tokens: int
    local: tuple[float, float]
    upload: tuple[float, float]
    arrive: float
    stages: tuple[tuple[float, float], ...]
    download: tuple[float, float]


class _ChunkEvents(NamedTuple):
    """The times of one chunk, as in `ChunkTimes`; `start` and `busy` are those of the first
    stage.
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
    """Times at which chunks leave a row of stages, computed stage by stage."""

    def __init__(self, stages: int) -> None:
        self.free = [0.0] * stages

    def leave(self, entry: float, busy: float) -> float:
        """Return the time at which the next chunk leaves the last stage, given its time of
        entry.
        """
        for q, free in enumerate(self.free):
            entry = max(entry, free) + busy
            self.free[q] = entry
        return entry


class _LongestWay:
    """The same times for any number of stages at once, because all stages take equally long for a
    chunk.

    By f_q = max(f_{q-1}, f_q of the previous chunk) + busy, chunk k leaves at the end of the
    longest path through the grid of chunks and stages. A path begins where some chunk j <= k
    enters, at f_1(j), and moves to the next stage or the next chunk at every step. It visits every
    chunk from j to k, and one of them at all the other stages, in the longest path the slowest one.
    Its length is f_1(j) + sum of busy over j..k + (stages - 1) x the largest busy of j..k. Chunks j
    with the same largest value are kept as a group, of which only the latest entry matters.
    """

    def __init__(self, stages: int) -> None:
        self.stages = stages
        self.passed = 0.0  # the sum of busy so far
        self.groups: list[
            tuple[float, float, float]
        ] = []  # largest busy, latest entry, longest path so far

    def leave(self, entry: float, busy: float) -> float:
        """Return the time at which the next chunk leaves the last stage, given its time of
        entry.
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
    """Minimise the time to first token over the chunk sizes of a prompt (paper 4, Sec. 3.3).

    Parameters
    ----------
    prompt_tokens
        Number N of tokens to prefill.
    bytes_per_token
        Size A of the hidden state of a token.
    uplink_bytes_per_second
        Uplink rate beta_up.
    downlink_bytes_per_second
        Downlink rate beta_down.
    cloud_delay
        Seconds g of a batch by its tokens.
    background_tokens
        Number mu of tokens of other devices in the batch.
    pipeline_length
        Number P of GPUs in the cloud pipeline; a batch of m tokens takes g(m) / P on each stage.
    local_overhead_seconds
        Constant a of the time a + b x that the device needs for a chunk of x tokens.
    local_seconds_per_token
        Slope b of that time.
    message_overhead_seconds
        Upload time of any chunk in addition to its bytes.
    link_latency_seconds
        One-way latency, in each direction.
    head_seconds
        Computation time of the device at the end, once per prompt.
    wait
        Wait of each chunk for the running batch, w = g(mu) / P. "serial": on the first stage before
        the chunk starts, as assumed in Eq. 3. "overlap": from its arrival, while the previous chunk
        is processed. "none": no wait.
    download
        Downloaded deep hidden states: those of every token ("all") or of the last one ("last").
    max_chunks
        Maximum number of chunks; None means no limit.
    grid_tokens
        Number of tokens of whose multiples chunks must end, except the last one; None allows any
        end.

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
        """Maximum number of chunks of any plan: the cap, and at most one per multiple of the
        grid.
        """
        grid = self.grid_tokens or 1
        return min(self.max_chunks or self.prompt_tokens, -(-self.prompt_tokens // grid))

    # ------------------------------------------------------------------ the judge

    def evaluate(self, plan: PromptChunkingPlan) -> Evaluation:
        """Return the time to first token of a plan.

        The terms follow the last chunk: its upload, its time in the cloud (including latency and
        waiting), the download of all deep hidden states (including latency), and the head.
        """
        self.expect_plan(plan)
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
            If the chunks do not sum to the prompt.
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
            times.append(
                ChunkTimes(
                    chunk.tokens,
                    chunk.local,
                    chunk.upload,
                    chunk.arrive,
                    tuple(stages),
                    chunk.download,
                )
            )
        return times

    def _events(self, plan: PromptChunkingPlan) -> Iterator[_ChunkEvents]:
        """Yield the times of each chunk by the event model, line by line; the stages after the
        first one are processed at once.
        """
        self._refuse(self._defects(plan))
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
        """Return the violations of the cap on chunks and of the grid."""
        self.expect_plan(plan)
        found = self._defects(plan)
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
            return [f"chunks: sum to {total}, the prompt has {self.prompt_tokens} tokens"]
        return []
