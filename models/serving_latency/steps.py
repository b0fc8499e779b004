"""Batches of serving latency, timed step by step for the judge (paper 1, Eq. 8, 13-22).

A batch stays together until its slowest member has finished. Tasks of different acceptance rates
gain different L_k tokens per step. The batch then takes max_k ceil(Q_k / L_k) steps, or as many as
its slowest task in the mean. Before step n it has reached max_k (I_k + (n - 1) L_k).
"""

from __future__ import annotations

import numpy as np

from specopt.models.acceptance import all_decoding_steps, slowest_rounds
from specopt.models.fields import Floats, Ints
from specopt.models.problem import exceeds
from specopt.models.serving_latency.data import ServingLatencyData, ServingLatencyPlan
from specopt.models.serving_stages import stage_ends, too_much

ENTRIES_AT_ONCE = 1 << 15
"""Batches times decoding steps that the judge holds at once: what fits a processor's cache."""


class StaticBatch:
    """One batch of a plan: its size, its steps, and what it has reached.

    Parameters
    ----------
    members
        Its tasks.
    inputs, outputs, tokens
        Per task of the problem: I_k, Q_k in every scenario, shape (S, K), and L_k.
    """

    def __init__(
        self, members: tuple[int, ...], inputs: Ints, outputs: Ints, tokens: Floats
    ) -> None:
        chosen = list(members)
        self.size = len(chosen)
        inputs, outputs, tokens = inputs[chosen], outputs[:, chosen], tokens[chosen]
        order = np.argsort(tokens, kind="stable")
        starts = np.flatnonzero(
            np.diff(tokens[order], prepend=0.0)
        )  # of equal rates the largest rule
        self.rates = tokens[order[starts]]
        self.inputs = np.maximum.reduceat(inputs[order], starts).astype(np.float64)
        most = np.maximum.reduceat(outputs[:, order], starts, axis=1)
        self.steps = all_decoding_steps(most, self.rates).max(axis=1)  # in every scenario

    def reached(self, n: Floats) -> Floats:
        """Return the most tokens that a member counts with before steps n."""
        found: Floats = (self.inputs[:, None] + (n - 1) * self.rates[:, None]).max(axis=0)
        return found


def static_batches(
    problem: ServingLatencyData, plan: ServingLatencyPlan, outputs: Ints
) -> list[StaticBatch]:
    """Return the batches of a plan; `outputs` are the lengths Q_k that tasks count with."""
    tokens = problem.tokens_per_step(plan.speculation_length)
    found = [StaticBatch(batch, problem.input_tokens, outputs, tokens) for batch in plan.batches]
    if problem.rounds == "slowest":
        for batch, members in zip(found, plan.batches, strict=True):
            batch.steps = _slowest(
                problem, plan, outputs[:, list(members)], problem.rates[list(members)]
            )
    return found


def _slowest(
    problem: ServingLatencyData, plan: ServingLatencyPlan, outputs: Ints, rates: Floats
) -> Ints:
    """Return the steps of tasks that run together, by scenario."""
    length = plan.speculation_length
    return np.array(
        [slowest_rounds(zip(row, rates.tolist(), strict=True), length) for row in outputs.tolist()]
    )


def play(problem: ServingLatencyData, plan: ServingLatencyPlan, outputs: Ints) -> Floats:
    """Return T_inf (Eq. 22) for several rows of output lengths at once, shape (S, K)."""
    mechanism, length = problem.mechanism_of(plan), plan.speculation_length
    batches = static_batches(problem, plan, outputs)
    seconds = np.zeros(len(outputs))
    last = max(int(batch.steps.max()) for batch in batches)
    width = min(last, ENTRIES_AT_ONCE)
    height = max(1, ENTRIES_AT_ONCE // width)
    for some in np.split(np.arange(len(outputs)), range(height, len(outputs), height)):  # scenarios
        for first in range(
            1, last + 1, width
        ):  # every array runs over the decoding steps n = 1..N, or a range of them
            n = np.arange(first, min(first + width, last + 1), dtype=np.float64)
            draft_done = np.zeros((len(some), len(n)))
            done = np.zeros_like(draft_done)
            for top in range(0, len(batches), height):
                rows = batches[top : top + height]
                size = np.array([batch.size for batch in rows])[:, None]
                reached = np.stack([batch.reached(n) for batch in rows])
                times = problem.stage_seconds(size, reached, length, n == 1)
                for batch, T_d, T_v in zip(rows, *times, strict=True):
                    active = n <= batch.steps[some, None]
                    drafted, finished = stage_ends(mechanism, draft_done, done, T_d, T_v)
                    draft_done = np.where(active, drafted, draft_done)
                    done = np.where(
                        active, finished, done
                    )  # finished batches have left the pipeline, Eq. 21
            seconds[some] += done.sum(axis=1)  # Eq. 22
    return seconds


def memory_violations(problem: ServingLatencyData, plan: ServingLatencyPlan) -> list[str]:
    """Return which batches need more memory than a model has (Eq. 9-10), in the scenario in which
    they need most.
    """
    found = []
    outputs = np.max(problem.scenarios, axis=0)
    for which, model, limit in problem.limited_models(problem.mechanism_of(plan)):
        for position, batch in enumerate(plan.batches):
            members = list(batch)
            tokens = int(problem.input_tokens[members].max()) + int(outputs[members].max())
            needed = model.parameter_bytes + len(members) * model.kv_bytes_per_token * tokens
            if exceeds(needed, limit):
                found.append(f"batches[{position}]: {too_much(needed, which, limit)}")
    return found
