"""Tasks served as one lot: in fixed batches that Algorithm 1 plans with O_max, to the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.acceptance import all_decoding_steps
from specopt.models.fields import Floats, Ints
from specopt.models.serving_data import ServingData
from specopt.models.serving_latency.problem import (
    ServingLatencyPlan,
    ServingLatencyProblem,
    static_batches,
)
from specopt.models.serving_stages import stage_ends
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.algorithm_1 import best_plan
from specopt.solvers.serving_latency.prepare import prepare


def served_lot(problem: ServingData[Any], chosen: Ints) -> tuple[float, Floats]:
    """Return when all batches of the chosen tasks have ended, and when each of these tasks has its
    own output.
    """
    lot = ServingLatencyProblem(
        **problem.shared_fields()
        | {
            "mechanism": "pipelined",
            "output_lengths": "conservative",
            "output_samples": None,
            "max_output_tokens": problem.longest_output,
            "input_tokens": problem.input_tokens[chosen],
            "output_tokens": problem.output_tokens[chosen],
            "snr": problem.snr[chosen],
            "acceptance_rate": problem.common_rate,
        }
    )
    prepared = prepare(lot)
    plan = best_plan(prepared, Budget(lot), prepared.shares)
    return _ends(lot, plan, problem.planned_output_tokens[chosen])


def _ends(
    lot: ServingLatencyProblem, plan: ServingLatencyPlan, outputs: Ints
) -> tuple[float, Floats]:
    """Return when all batches have ended (Eq. 22), and when each task has its own output."""
    length = plan.speculation_length
    batches = static_batches(lot, plan, outputs[None])
    last = max(int(batch.steps[0]) for batch in batches)
    n = np.arange(1.0, last + 1.0)
    own = all_decoding_steps(outputs, lot.tokens_per_step(length)) - 1
    drafted, done, finish = np.zeros(last), np.zeros(last), np.zeros(len(outputs))
    for batch, members in zip(batches, map(list, plan.batches), strict=True):
        times = lot.stage_seconds(batch.size, batch.reached(n), length, n == 1)
        active = n <= batch.steps[0]
        ends = stage_ends("pipelined", drafted, done, *times)
        drafted, done = np.where(active, ends[0], drafted), np.where(active, ends[1], done)
        finish[members] = done[own[members]]
    began = np.cumsum(done) - done
    return float(done.sum()), finish + began[own]
