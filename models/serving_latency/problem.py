"""Serving latency: choose batches, their order, the speculation length and bandwidth shares.

This is problem (24) of paper 1. K tasks upload their inputs over a shared uplink. In every decoding
step, their batches then run through a two-stage pipeline: the draft model drafts l tokens for a
batch while the verify model verifies the previous batch. The objective is T_inf + T_com (Eq. 23):
the sum over decoding steps of the pipeline's makespan, plus the time until the last input has
arrived.

The judge (`evaluate`, `violations`) implements the equations with arrays over the decoding steps.
The judge and the solvers share only the code for Eq. 7-17.

A batch stays together until its slowest task has finished. Tasks with different acceptance rates
gain different numbers L_k of tokens per step. The batch then takes max_k ceil(Q_k / L_k) steps. If
`rounds` is "slowest", the batch instead takes the expected number of steps of the slowest task,
rounded up. Before step n, the batch has reached a length of max_k (I_k + (n - 1) L_k) tokens.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from specopt.models.acceptance import all_decoding_steps, slowest_rounds
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Floats,
    Given,
    Ints,
    IntsLike,
    Positives,
    TokenCounts,
    optional,
    required,
)
from specopt.models.problem import Evaluation, exceeds
from specopt.models.serving_data import (
    Samples,
    ServingData,
    ServingPlan,
    TaskRates,
    TaskShares,
    stage_ends,
    too_much,
)

MAX_COUNTED_TOKENS = 10_000
"""Maximum output length for which the distribution of a response's number of rounds is computed."""

ENTRIES_AT_ONCE = 1 << 15
"""Maximum number of entries in the judge's arrays, which have one row per batch or sample and one
column per decoding step. Arrays of this size fit in the processor's cache.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingLatencyPlan(ServingPlan):
    """A plan that consists of batches, a speculation length and bandwidth shares.

    Parameters
    ----------
    batches
        Lists of task indices, counted from 0, one list per batch, in pipeline order.
    speculation_length
        Number l of draft tokens per decoding step; 0 means autoregressive decoding.
    bandwidth_share
        Share w_k of the uplink bandwidth that each task receives.
    mechanism
        Mechanism that the plan chooses. It is used only if the problem leaves the choice open.
    """

    bandwidth_share: TaskShares = required()
    batches: Given[tuple[tuple[int, ...], ...], Sequence[IntsLike]] = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingLatencyProblem(ServingData[ServingLatencyPlan]):
    """Minimise the total serving latency of K tasks under speculative decoding (paper 1).

    Parameters
    ----------
    input_tokens
        Prompt length I_k of each task, in tokens.
    output_tokens
        Output length O_k of each task, in tokens.
    snr
        Signal-to-noise ratio of each task's uplink on a linear scale.
    bandwidth_hz
        Uplink bandwidth B_w in hertz, shared by all tasks.
    embedding_bits_per_token
        Number lambda of bits sent per input token. None means 16 times the sum of the hidden sizes
        of all models that the mechanism uses.
    draft
        Shape of the draft model. None is allowed for autoregressive decoding.
    verify
        Shape of the verify model.
    draft_runtime
        Runtime of one forward pass of the draft model: linear, piecewise linear, or a table of
        measured passes.
    verify_runtime
        Runtime of one forward pass of the verify model: linear, piecewise linear, or a table of
        measured passes.
    draft_memory_bytes
        Memory for the draft model's weights and the KV cache of one batch, in bytes.
    verify_memory_bytes
        Memory for the verify model's weights and the KV cache of one batch, in bytes. None means
        that the memory is unlimited.
    acceptance_rate
        Probability alpha that a draft token is accepted: one number, or one for each task.
    max_speculation_length
        Maximum speculation length l.
    output_lengths
        Output lengths used to evaluate plans. "conservative" uses `max_output_tokens` for every
        task, "known" uses the output length of each task, and "predicted" uses the mean objective
        over `output_samples`.
    output_samples
        Equally likely samples of the output lengths, one row per sample.
    max_output_tokens
        Maximum output length O_max. None means the largest output length.
    mechanism
        Mechanism: "pipelined", "sequential" or "autoregressive"; "any" lets the plan choose.
    rounds
        Rule for the number of decoding steps of a batch. "mean" uses Eq. 8. "slowest" uses the
        expected maximum of the tasks' independent numbers of rounds, rounded up. This rule requires
        conservative or known output lengths.

    Examples
    --------
    >>> from specopt import LinearRuntime, PaperDecoder, ServingLatencyProblem, solve
    >>> problem = ServingLatencyProblem(
    ...     input_tokens=[120, 300, 80],
    ...     output_tokens=[40, 25, 60],
    ...     snr=[30.0, 12.0, 55.0],
    ...     bandwidth_hz=20e6,
    ...     draft=PaperDecoder(layers=22, hidden=2048, ffn=5632),
    ...     verify=PaperDecoder(layers=32, hidden=4096, ffn=11008),
    ...     draft_runtime=LinearRuntime(seconds_per_flop=1e-12, overhead_seconds=2e-3),
    ...     verify_runtime=LinearRuntime(seconds_per_flop=1e-14, overhead_seconds=2e-2),
    ...     draft_memory_bytes=8e9,
    ...     acceptance_rate=0.8,
    ...     max_speculation_length=8,
    ...     output_lengths="known",
    ... )
    >>> solve(problem).status.value
    'optimal'
    """

    kind = "serving-latency"
    plan_type = ServingLatencyPlan

    input_tokens: TokenCounts = required()
    output_tokens: TokenCounts = required()
    snr: Positives = required()
    acceptance_rate: TaskRates = optional()
    output_samples: Samples = optional()

    rounds: Literal["mean", "slowest"] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds == "mean":
            return
        if self.output_lengths == "predicted":
            raise InvalidInput(
                "rounds: expected 'mean' unless output_lengths is 'conservative' or 'known', got"
                " 'slowest'"
            )
        if self.longest_output > MAX_COUNTED_TOKENS:
            raise InvalidInput(
                f"rounds: expected 'mean' for more than {MAX_COUNTED_TOKENS:,} output tokens, "
                f"got 'slowest' for {self.longest_output}"
            )

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build the problem from JSON-like data.

        Raises
        ------
        InvalidInput
            If a field is unknown, missing, of the wrong type or outside its domain. If the unknown
            field is `batching`, the message suggests the kind `continuous-serving`.
        """
        if isinstance(data, Mapping) and "batching" in data:
            raise InvalidInput(
                "batching: serving-latency has no such field, because its batches are fixed; for"
                " batches that change between decoding steps, use the kind continuous-serving"
            )
        return super().from_dict(data)

    def evaluate(self, plan: ServingLatencyPlan) -> Evaluation:
        """Return the latency T_inf + T_com of a plan (Eq. 23), in seconds, averaged over the
        samples of output lengths.
        """
        self.expect_fit(plan)
        communication = float(
            self.uploads(self.mechanism_of(plan), plan.bandwidth_share).max()
        )  # Eq. 16
        inference = float(np.mean(play(self, plan, np.stack(self.scenarios))))
        return Evaluation(
            inference + communication,
            {"inference_seconds": inference, "communication_seconds": communication},
        )

    def violations(self, plan: ServingLatencyPlan) -> list[str]:
        """Return messages about the constraints (24a)-(24g) that the plan violates."""
        found = super().violations(plan)
        if found:
            return found
        found = self.share_and_length_violations(plan, float(plan.bandwidth_share.sum()))
        # (24b), Eq. 9-10: every task may reach its maximum output length over all samples
        outputs = np.max(self.scenarios, axis=0)
        for which, model, limit in self.limited_models(self.mechanism_of(plan)):
            for position, batch in enumerate(plan.batches):
                members = list(batch)
                tokens = int(self.input_tokens[members].max()) + int(outputs[members].max())
                needed = model.parameter_bytes + len(members) * model.kv_bytes_per_token * tokens
                if exceeds(needed, limit):
                    found.append(f"batches[{position}]: the batch {too_much(needed, which, limit)}")
        return found

    def batch_defects(self, plan: ServingLatencyPlan) -> list[str]:
        """Return the reasons why a plan's batches are not valid for this problem."""
        found = [] if plan.batches else ["batches: expected at least one batch, got none"]
        for position, batch in enumerate(plan.batches):
            where = f"batches[{position}]: expected"
            if not batch:
                found.append(f"{where} at least one task, got none")
            found += [
                f"{where} tasks 0 to {self.tasks - 1}, got {task}"
                for task in batch
                if not 0 <= task < self.tasks
            ]
        seen = Counter(itertools.chain.from_iterable(plan.batches))
        found += [
            f"batches: task {task} is in {seen[task]} batches instead of one"
            for task in range(self.tasks)
            if seen[task] != 1
        ]
        return found


class StaticBatch:
    """A batch whose tasks do not change, with its size, step count and length before each step.

    Parameters
    ----------
    members
        Indices of the tasks in the batch.
    inputs
        Prompt length I_k of each task in the problem, shape (K,).
    outputs
        Output length Q_k of each task in the problem for every sample, shape (S, K).
    tokens
        Number L_k of tokens that each task in the problem gains per step, shape (K,).
    """

    def __init__(
        self, members: tuple[int, ...], inputs: Ints, outputs: Ints, tokens: Floats
    ) -> None:
        chosen = list(members)
        self.size = len(chosen)
        inputs = inputs[chosen]
        outputs = outputs[:, chosen]
        tokens = tokens[chosen]
        order = np.argsort(tokens, kind="stable")
        starts = np.flatnonzero(
            np.diff(tokens[order], prepend=0.0)
        )  # among tasks with equal rates, only the largest value matters
        self.rates = tokens[order[starts]]
        self.inputs = np.maximum.reduceat(inputs[order], starts).astype(np.float64)
        most = np.maximum.reduceat(outputs[:, order], starts, axis=1)
        self.steps = all_decoding_steps(most, self.rates).max(axis=1)  # in every sample

    def reached(self, n: Floats) -> Floats:
        """Return the length of the batch's longest task before each step, in tokens. `n` contains
        the numbers of the steps, counted from 1.
        """
        found: Floats = (self.inputs[:, None] + (n - 1) * self.rates[:, None]).max(axis=0)
        return found


def static_batches(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, outputs: Ints
) -> list[StaticBatch]:
    """Return a plan's batches as `StaticBatch` objects. `outputs` contains the output lengths Q_k
    for every sample, shape (S, K).
    """
    length = plan.speculation_length
    tokens = problem.tokens_per_step(length)
    found = [StaticBatch(batch, problem.input_tokens, outputs, tokens) for batch in plan.batches]
    if problem.rounds == "slowest":
        for batch, members in zip(found, map(list, plan.batches), strict=True):
            rates = problem.rates[members].tolist()
            rows = outputs[:, members].tolist()  # one for each sample
            batch.steps = np.array(
                [slowest_rounds(zip(row, rates, strict=True), length) for row in rows]
            )
    return found


def play(problem: ServingLatencyProblem, plan: ServingLatencyPlan, outputs: Ints) -> Floats:
    """Return a plan's inference time T_inf in seconds for every sample, shape (S,) (Eq. 22).
    `outputs` contains the output lengths of all tasks for every sample, shape (S, K).
    """
    mechanism = problem.mechanism_of(plan)
    length = plan.speculation_length
    batches = static_batches(problem, plan, outputs)
    seconds = np.zeros(len(outputs))
    last = max(int(batch.steps.max()) for batch in batches)
    width = min(last, ENTRIES_AT_ONCE)
    height = max(1, ENTRIES_AT_ONCE // width)
    for some in np.split(np.arange(len(outputs)), range(height, len(outputs), height)):  # samples
        for first in range(
            1, last + 1, width
        ):  # every array covers the decoding steps n = 1..N, or a part of this range
            n = np.arange(first, min(first + width, last + 1), dtype=np.float64)
            draft_done = np.zeros((len(some), len(n)))
            done = np.zeros_like(draft_done)
            for top in range(0, len(batches), height):
                rows = batches[top : top + height]
                size = np.array([batch.size for batch in rows])[:, None]
                reached = np.stack([batch.reached(n) for batch in rows])
                stages = problem.stage_seconds(size, reached, length, n == 1)
                for batch, T_d, T_v in zip(rows, *stages, strict=True):
                    active = n <= batch.steps[some, None]  # the other batches have finished, Eq. 21
                    times = T_d * active, T_v * active
                    draft_done, done = stage_ends(mechanism, draft_done, done, *times)
            seconds[some] += done.sum(axis=1)  # Eq. 22
    return seconds
