"""A helper that serves a set of tasks until all of them are complete.

The batches are fixed. They are planned by Algorithm 1, with every output length set to the maximum
O_max.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.acceptance import all_decoding_steps
from specopt.models.fields import Floats, Ints
from specopt.models.serving_data import ServingData
from specopt.models.serving_latency.problem import ServingLatencyProblem, static_batches
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.algorithm_1 import best_plan
from specopt.solvers.serving_latency.prepare import prepare


def served_lot(problem: ServingData[Any], chosen: Ints) -> tuple[float, Floats]:
    """Serve the chosen tasks in fixed batches, and return when they finish.

    Return a tuple (end, finish): the time in seconds at which the last batch ends, and the time in
    seconds at which each task finishes. A task finishes when its own output is complete.
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
    plan = best_plan(prepared, Budget(lot))
    outputs, length = problem.planned_output_tokens[chosen], plan.speculation_length
    batches = static_batches(lot, plan, outputs[None])
    n = np.arange(1.0, max(int(batch.steps[0]) for batch in batches) + 1.0)
    times = []
    for batch in batches:
        stages = lot.stage_seconds(batch.size, batch.reached(n), length, n == 1)
        active = n <= batch.steps[0]
        times.append((stages[0] * active, stages[1] * active))
    ends = [*prepared.completed(times, np.maximum)]
    began = np.cumsum(ends[-1]) - ends[-1]
    last = all_decoding_steps(outputs, lot.tokens_per_step(length)) - 1
    finish = began[last]
    for members, done in zip(map(list, plan.batches), ends, strict=True):
        finish[members] += done[last[members]]
    return float(ends[-1].sum()), finish
