"""Serving latency: batches, pipeline order, speculation length and bandwidth shares (paper 1,
problem (24)).

K tasks upload their inputs over a shared uplink, then run in batches through a two-stage pipeline,
decoding step by decoding step. The draft model guesses l tokens for a batch while the verify model
checks the batch before it. A batch stays together until its last member has finished. The objective
is T_inf + T_com (Eq. 23): the sum over decoding steps of the pipeline's makespan, plus the time
until the last input has arrived.

The judge (`evaluate`, `violations`) is written from the equations, array by array over the decoding
steps, in `serving_latency_steps`, and shares with the solvers only the primitives of Eq. 7-17.
"""

from __future__ import annotations

import itertools

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.problem import Evaluation
from specopt.models.serving_data import DRAFTING_FIELDS, MECHANISMS
from specopt.models.serving_latency.data import ServingLatencyData, ServingLatencyPlan
from specopt.models.serving_latency.steps import memory_violations, play
from specopt.models.serving_stages import Mechanism

__all__ = [
    "DRAFTING_FIELDS",
    "MECHANISMS",
    "Mechanism",
    "ServingLatencyPlan",
    "ServingLatencyProblem",
]


class ServingLatencyProblem(ServingLatencyData):
    """Minimise the total serving latency of K tasks under speculative decoding (paper 1).

    Parameters
    ----------
    input_tokens, output_tokens, snr
        Per task: prompt length I_k, output length O_k, linear signal-to-noise ratio of its uplink.
    bandwidth_hz
        Uplink bandwidth B_w shared by all tasks.
    embedding_bits_per_token
        Bits lambda sent per input token; None stands for 16 times the sum of the hidden sizes that
        take part.
    draft, verify
        Shapes of the draft and the verify model. `draft` may be None for autoregressive decoding.
    draft_runtime, verify_runtime
        Runtime of one forward pass of each model: a line, pieces, or measured passes.
    draft_memory_bytes, verify_memory_bytes
        Memory for weights and KV cache of one batch; None for the verify model means ample.
    acceptance_rate
        Probability alpha that a draft token is accepted: one number, or one for each task.
    max_speculation_length
        Largest l allowed.
    output_lengths
        "conservative": every task counts as `max_output_tokens` long; "known": as its own length;
        "predicted": as `output_samples` say, and the objective is the mean over them.
    output_samples
        Equally likely output lengths, a row for each sample.
    max_output_tokens
        O_max; None stands for the largest output length.
    mechanism
        "pipelined", "sequential", "autoregressive", or "any" to let the plan choose.
    rounds
        "mean": a batch takes the decoding steps of Eq. 8; "slowest": the expected largest of its
        tasks' numbers of rounds, which do not depend on each other, rounded up. Conservative or
        known output lengths only.

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

    def evaluate(self, plan: ServingLatencyPlan) -> Evaluation:
        """Return the latency of a plan in seconds: T_inf + T_com (Eq. 23), in the mean over the
        samples.
        """
        self.expect_plan(plan)
        defects = self.defects(plan)
        if defects:
            raise InvalidInput(defects[0])
        communication = float(
            self.uploads(self.mechanism_of(plan), plan.bandwidth_share).max()
        )  # Eq. 16
        inference = float(np.mean(play(self, plan, np.stack(self.scenarios))))
        return Evaluation(
            inference + communication,
            {"inference_seconds": inference, "communication_seconds": communication},
        )

    def violations(self, plan: ServingLatencyPlan) -> list[str]:
        """Return what the plan violates of constraints (24a)-(24g)."""
        self.expect_plan(plan)
        found = self.defects(plan)
        if found:
            return found
        found = self.share_and_length_violations(plan, float(plan.bandwidth_share.sum()))
        return found + memory_violations(self, plan)  # (24b)

    def batch_defects(self, plan: ServingLatencyPlan) -> list[str]:
        """Return why the batches are not those of a plan for this problem."""
        if all(plan.batches) and sorted(itertools.chain.from_iterable(plan.batches)) == list(
            range(self.tasks)
        ):
            return []
        found = [] if plan.batches else ["batches: expected at least one, got none"]
        seen = [0] * self.tasks
        for position, batch in enumerate(plan.batches):
            if not batch:
                found.append(f"batches[{position}]: expected at least one task, got none")
            for task in batch:
                if not 0 <= task < self.tasks:
                    found.append(
                        f"batches[{position}]: expected tasks 0 to {self.tasks - 1}, got {task}"
                    )
                else:
                    seen[task] += 1
        found += [
            f"batches: task {task} is in {n} batches instead of one"
            for task, n in enumerate(seen)
            if n != 1
        ]
        return found
