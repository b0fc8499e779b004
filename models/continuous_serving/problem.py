"""Continuous serving: tasks arrive over time, and batches may change between decoding steps.

This problem extends paper 1. The tasks and the pipeline are the same as in `serving-latency`. As in
serving engines, a task joins at the first step that starts once the task is ready, and leaves when
its output is complete. A task may move to another batch whenever a phase of the plan begins. The
objective is the makespan or the mean latency.

The judge (`evaluate`, `violations`) simulates every step (module `steps`). The judge and the
solvers share only the code for Eq. 7-17.
"""

from __future__ import annotations

import itertools

import numpy as np

from specopt.models.continuous_serving.data import (
    ContinuousServingData,
    ContinuousServingPlan,
    Phase,
)
from specopt.models.continuous_serving.steps import Played, play
from specopt.models.fields import Floats
from specopt.models.problem import Evaluation
from specopt.models.serving_data import Mechanism

__all__ = ["ContinuousServingPlan", "ContinuousServingProblem", "Phase"]


class ContinuousServingProblem(ContinuousServingData):
    """Minimise the latency of K tasks whose batches may change between decoding steps.

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
        Runtime of one forward pass of the draft model: linear or piecewise linear.
    verify_runtime
        Runtime of one forward pass of the verify model: linear or piecewise linear.
    draft_memory_bytes
        Memory for the draft model's weights and the KV cache of one batch, in bytes.
    verify_memory_bytes
        Memory for the verify model's weights and the KV cache of one batch, in bytes. None means
        that the memory is unlimited.
    acceptance_rate
        Probability alpha that a draft token is accepted: one number, or one for each task.
    max_speculation_length
        Maximum speculation length l.
    min_speculation_length
        Minimum speculation length l. The value 0 lets batches stop drafting for a while.
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
    arrival_seconds
        Arrival time of each task, in seconds. None means that all tasks arrive together and that
        decoding starts only after every input is uploaded.
    regroup_seconds
        Time in seconds that each sequence moved to another batch adds to every stage of its run in
        the first step of the phase.
    objective
        Objective to minimise: "makespan" is the time until the last task has finished, and
        "mean_latency" is the mean time from a task's arrival to its completion.

    Examples
    --------
    >>> from specopt import ContinuousServingProblem, LinearRuntime, PaperDecoder, solve
    >>> problem = ContinuousServingProblem(
    ...     input_tokens=[120, 300, 80],
    ...     output_tokens=[40, 25, 60],
    ...     snr=[30.0, 12.0, 55.0],
    ...     arrival_seconds=[0.0, 0.1, 0.4],
    ...     bandwidth_hz=20e6,
    ...     draft=PaperDecoder(layers=22, hidden=2048, ffn=5632),
    ...     verify=PaperDecoder(layers=32, hidden=4096, ffn=11008),
    ...     draft_runtime=LinearRuntime(seconds_per_flop=1e-12, overhead_seconds=2e-3),
    ...     verify_runtime=LinearRuntime(seconds_per_flop=1e-14, overhead_seconds=2e-2),
    ...     draft_memory_bytes=8e9,
    ...     acceptance_rate=0.8,
    ...     max_speculation_length=8,
    ...     output_lengths="known",
    ...     objective="mean_latency",
    ... )
    >>> solve(problem, time_limit=1).status.value in ("optimal", "feasible")
    True
    """

    kind = "continuous-serving"

    def evaluate(self, plan: ContinuousServingPlan) -> Evaluation:
        """Return the makespan or the mean latency of a plan, in seconds, averaged over the samples
        of output lengths.
        """
        self.expect_fit(plan)
        arrival, ready = self.readiness(plan)
        makespan = self.objective == "makespan"
        of, since = (np.max, 0.0) if makespan else (np.mean, arrival)
        communication = float(of(ready - arrival))
        inference = float(
            np.mean([of(one.finish - since) - communication for one in self.played(plan)])
        )
        return Evaluation(
            inference + communication,
            {"inference_seconds": inference, "communication_seconds": communication},
        )

    def latencies(self, plan: ContinuousServingPlan) -> Floats:
        """Return the latency of each task from arrival to completion, in seconds, with one row per
        sample of output lengths.
        """
        arrival, _ = self.readiness(plan)
        return np.array([one.finish - arrival for one in self.played(plan)])

    def played(self, plan: ContinuousServingPlan) -> tuple[Played, ...]:
        """Simulate a plan for every sample of output lengths, and return the results. The results
        for the most recent plan are cached.
        """
        kept = self.__dict__.get("_played")
        if kept is None or kept[0] is not plan:
            kept = plan, play(self, plan)
            self.__dict__["_played"] = kept
        found: tuple[Played, ...] = kept[1]
        return found

    def max_total_share(self, mechanism: Mechanism, shares: Floats) -> float:
        """Return the maximum total bandwidth share that is in use at any time. A task uses its
        share from its arrival to the end of its upload.
        """
        return _max_total_share(*self.readiness_at(mechanism, shares), shares)

    def violations(self, plan: ContinuousServingPlan) -> list[str]:
        """Return messages about the constraints (24a)-(24g) that the plan violates."""
        found = super().violations(plan)
        if found:
            return found
        mechanism = self.mechanism_of(plan)
        found = self.share_and_length_violations(
            plan, self.max_total_share(mechanism, plan.bandwidth_share)
        )
        if mechanism != "autoregressive":
            least = self.min_speculation_length
            limit = self.max_speculation_length or 0
            found += [
                f"phases[{number}].speculation_length: expected {least} to {limit}, got {length}"
                for number, phase in enumerate(plan.phases)
                for length in sorted(set(phase.lengths(plan.speculation_length)))
                if not least <= length <= limit
            ]
        if self.limited_models(mechanism):  # (24b)
            found += [breach for one in self.played(plan) for breach in one.breaches]
        return list(dict.fromkeys(found))

    def batch_defects(self, plan: ContinuousServingPlan) -> list[str]:
        """Return the reasons why a plan's phases are not valid for this problem."""
        if not plan.phases:
            return ["phases: expected at least one phase, got none"]
        found = []
        drafting = self.mechanism_of(plan) != "autoregressive"
        before = 0
        for number, phase in enumerate(plan.phases):
            where = f"phases[{number}]"
            if number == 0 and phase.first_step != 1:
                found.append(f"{where}.first_step: expected 1, got {phase.first_step}")
            if phase.first_step <= before:
                found.append(
                    f"{where}.first_step: expected more than {before}, got {phase.first_step}"
                )
            before = phase.first_step
            if not phase.batches:
                found.append(f"{where}.batches: expected at least one batch, got none")
                continue
            lengths = phase.lengths(plan.speculation_length)
            if len(lengths) != len(phase.batches):
                found.append(
                    f"{where}.speculation_length: expected {len(phase.batches)} entries, got"
                    f" {len(lengths)}"
                )
            least = self.min_speculation_length if drafting else 0
            if min(lengths) < least or (max(lengths) > 0 and not drafting):
                word = f"at least {least}" if drafting else "0 when mechanism is 'autoregressive'"
                found.append(
                    f"{where}.speculation_length: expected {word}, got {phase.speculation_length}"
                )
            listed = sorted(itertools.chain.from_iterable(phase.batches))
            if listed != list(range(self.tasks)):
                found.append(
                    f"{where}.batches: expected each task from 0 to {self.tasks - 1} exactly once"
                )
        return found


def _max_total_share(start: Floats, end: Floats, share: Floats) -> float:
    """Return the maximum total share that is in use at any time. Entry i of `share` is in use from
    ``start[i]`` to ``end[i]``.
    """
    if (start == start[0]).all():
        return float(share.sum())
    begun, over = np.argsort(start), np.argsort(end)
    taken = np.cumsum(share[begun])[np.searchsorted(start[begun], start[begun], side="right") - 1]
    returned = np.concatenate([[0.0], np.cumsum(share[over])])[
        np.searchsorted(end[over], start[begun], side="right")
    ]
    return float((taken - returned).max())
