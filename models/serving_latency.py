"""Serving latency: batches, pipeline order, speculation length and bandwidth shares (paper 1, problem (24)).

K tasks upload their inputs over a shared uplink, then run in batches through a two-stage pipeline, decoding step by
decoding step. The draft model guesses l tokens for a batch while the verify model checks the batch before it. The
objective is T_inf + T_com (Eq. 23): the sum over decoding steps of the pipeline's makespan, plus the time until the
last input has arrived.

Batches are static, as in the paper, or change between the steps (`batching: "rebatched"`).

The judge (`evaluate`, `violations`) is written from the equations, array by array over the decoding steps, in
`static_serving` and `rebatched_serving`, and shares with the solvers only the primitives of Eq. 7-17.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.problem import Evaluation, exceeds
from specopt.models.rebatched_serving import Played, length_violations, phase_defects, play
from specopt.models.serving_data import DRAFTING_FIELDS, MECHANISMS, Mechanism, ServingData, ServingLatencyPlan
from specopt.models.static_serving import play_static, static_memory

__all__ = ["DRAFTING_FIELDS", "MECHANISMS", "Mechanism", "ServingLatencyPlan", "ServingLatencyProblem"]

SMALLEST_SHARE = 1e-201
"""Smallest share of the bandwidth that a plan may give: of uploads at the two ends of their range, and their sum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingLatencyProblem(ServingData):
    """Minimise the total serving latency of K tasks under speculative decoding (paper 1).

    Parameters
    ----------
    input_tokens, output_tokens, snr
        Per task: prompt length I_k, output length O_k, linear signal-to-noise ratio of its uplink.
    bandwidth_hz
        Uplink bandwidth B_w shared by all tasks.
    embedding_bits_per_token
        Bits lambda sent per input token; None stands for 16 times the sum of the hidden sizes that take part.
    draft, verify
        Shapes of the draft and the verify model. `draft` may be None for autoregressive decoding.
    draft_runtime, verify_runtime
        Runtime of one forward pass of each model: a line, pieces, or for static batches measured passes.
    draft_memory_bytes, verify_memory_bytes
        Memory for weights and KV cache of one batch; None for the verify model means ample.
    acceptance_rate
        Probability alpha that a draft token is accepted: one number, or one for each task.
    max_speculation_length, min_speculation_length
        Largest and smallest l allowed; 0: batches of a rebatched plan may guess nothing for a while.
    output_lengths
        "conservative": every task counts as `max_output_tokens` long; "known": as its own length; "predicted": as
        `output_samples` say, and the objective is the mean over them.
    output_samples
        Equally likely output lengths, a row for each sample.
    max_output_tokens
        O_max; None stands for the largest output length.
    mechanism
        "pipelined", "sequential", "autoregressive", or "any" to let the plan choose.
    batching
        "static": a batch stays together until its last member has finished; "rebatched": batches may change between
        decoding steps, and finished tasks leave at once.
    arrival_seconds
        When each task arrives; None: all at once, and nothing starts before every input is up. Rebatched only.
    regroup_seconds
        What every sequence that changes its batch costs, on each stage that moves it.
    rounds
        "mean": a batch takes the decoding steps of Eq. 8; "slowest": the expected largest of its tasks' numbers of
        rounds, which do not depend on each other, rounded up. Static batches of given lengths only.
    objective
        "makespan": until the last task has finished; "mean_latency": from arrival to finish, on average.
    """

    kind = "serving-latency"

    def evaluate(self, plan: ServingLatencyPlan) -> Evaluation:
        """Return the latency of a plan in seconds: T_inf + T_com (Eq. 23), or as `objective` and `batching` say."""
        defects = self._defects(plan)
        if defects:
            raise InvalidInput(defects[0])
        arrival, ready = self.readiness(plan)
        waited, of = ready - arrival, np.max if self.objective == "makespan" else np.mean
        communication = float(of(waited))  # Eq. 16
        if self.batching == "static":
            seconds, finish = play_static(self, plan, np.stack(self.scenarios))
            inference = float(np.mean(seconds if self.objective == "makespan" else finish))
        else:
            since = 0.0 if self.objective == "makespan" else arrival
            inference = float(np.mean([of(one.finish - since) - communication for one in self.played(plan)]))
        return Evaluation(
            inference + communication, {"inference_seconds": inference, "communication_seconds": communication}
        )

    def latencies(self, plan: ServingLatencyPlan) -> Floats:
        """Return what each task takes from arrival to finish, a row for each scenario (`objective: "mean_latency"`)."""
        arrival, ready = self.readiness(plan)
        if self.batching == "static":
            return np.asarray(play_static(self, plan, np.stack(self.scenarios))[1] + ready.max())
        return np.array([one.finish - arrival for one in self.played(plan)])

    def played(self, plan: ServingLatencyPlan) -> tuple[Played, ...]:
        """Return what becomes of the tasks of a rebatched plan in every scenario; kept for the plan asked for last."""
        kept = self.__dict__.get("_played")
        if kept is None or kept[0] is not plan:
            kept = plan, play(self, plan)
            self.__dict__["_played"] = kept
        found: tuple[Played, ...] = kept[1]
        return found

    def most_at_once(self, mechanism: Mechanism, shares: Floats) -> float:
        """Return the largest sum of the shares that are held at one time, each from arrival to the upload's end."""
        return _most_at_once(*self.readiness_at(mechanism, shares), shares)

    def violations(self, plan: ServingLatencyPlan) -> list[str]:
        """Return what the plan violates of constraints (24a)-(24g)."""
        found = self._defects(plan)
        if found:
            return found
        mechanism = self.mechanism_of(plan)
        total = self.most_at_once(mechanism, plan.bandwidth_share)
        if exceeds(total, 1.0):  # (24a)
            found.append(f"bandwidth_share: sums to {total:.12g}, more than 1")
        if mechanism != "autoregressive":  # (24f)
            limit = self.max_speculation_length
            if not 1 <= plan.speculation_length <= (limit or 0):
                found.append(f"speculation_length: expected 1 to {limit}, got {plan.speculation_length}")
            found += length_violations(self, plan)
        if self.limited_models(mechanism):  # (24b)
            if self.batching == "static":
                found += static_memory(self, plan)
            else:
                found += [defect for one in self.played(plan) for defect in one.breaches]
        return list(dict.fromkeys(found))

    def _defects(self, plan: ServingLatencyPlan) -> list[str]:
        """Return why the plan is no plan for this problem at all ((24c)-(24e), shapes)."""
        found = []
        try:
            mechanism = self.mechanism_of(plan)
        except InvalidInput as error:
            return [str(error)]
        if (plan.speculation_length == 0) != (mechanism == "autoregressive"):
            expected = "0 (autoregressive)" if mechanism == "autoregressive" else f"at least 1 ({mechanism})"
            found.append(f"speculation_length: expected {expected}, got {plan.speculation_length}")
        if len(plan.bandwidth_share) != self.tasks:
            found.append(f"bandwidth_share: expected {self.tasks} entries, got {len(plan.bandwidth_share)}")
        elif (plan.bandwidth_share <= 0).any():
            task = int(np.argmin(plan.bandwidth_share))
            found.append(f"bandwidth_share[{task}]: expected more than 0, got {plan.bandwidth_share[task]}")
        elif (plan.bandwidth_share < SMALLEST_SHARE).any() or (plan.bandwidth_share > 1 / SMALLEST_SHARE).any():
            found.append(f"bandwidth_share: expected shares from {SMALLEST_SHARE:g} on, each task's upload must end")
        wanted, other = ("batches", "phases") if self.batching == "static" else ("phases", "batches")
        if getattr(plan, other):
            found.append(f"{other}: expected none (batching {self.batching!r}), got {len(getattr(plan, other))}")
        if not getattr(plan, wanted):
            found.append(f"{wanted}: expected at least one (batching {self.batching!r}), got none")
        return found + (self._batch_defects(plan) if self.batching == "static" else phase_defects(self, plan))

    def _batch_defects(self, plan: ServingLatencyPlan) -> list[str]:
        if all(plan.batches) and sorted(itertools.chain.from_iterable(plan.batches)) == list(range(self.tasks)):
            return []
        found = []
        seen = [0] * self.tasks
        for position, batch in enumerate(plan.batches):
            if not batch:
                found.append(f"batches[{position}]: expected at least one task, got none")
            for task in batch:
                if not 0 <= task < self.tasks:
                    found.append(f"batches[{position}]: expected tasks 0 to {self.tasks - 1}, got {task}")
                else:
                    seen[task] += 1
        found += [f"batches: task {task} is in {n} batches instead of one" for task, n in enumerate(seen) if n != 1]
        return found


def _most_at_once(start: Floats, end: Floats, share: Floats) -> float:
    """Return the largest sum of the shares that are held at one time, each from its start up to its end."""
    if (start == start[0]).all():
        return float(share.sum())
    begun, over = np.argsort(start), np.argsort(end)
    taken = np.cumsum(share[begun])[np.searchsorted(start[begun], start[begun], side="right") - 1]
    returned = np.concatenate([[0.0], np.cumsum(share[over])])[np.searchsorted(end[over], start[begun], side="right")]
    return float((taken - returned).max())
