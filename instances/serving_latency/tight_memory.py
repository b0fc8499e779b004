"""Draft memory that holds only a few tasks at a time."""

from __future__ import annotations

import dataclasses

from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.models.arguments import number
from specopt.models.serving_latency.problem import ServingLatencyProblem


def tight_memory(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    fit: float = 3.0,
    max_output: int = 512,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1 with draft memory for a given number of tasks with the longest input
    (Eq. 9-10).

    Difficulty: batches of long prompts must be small and batches of short ones need not be, so the
    best sizes differ along the pipeline. There are many batches, and therefore many orders. Fixed
    sizes waste either memory or verification.

    Parameters
    ----------
    pair
        Draft and verify model, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    fit
        Number of tasks with the longest input that fit into memory next to the draft model, at
        least 1.
    max_output
        Largest output length O_max.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    assert problem.draft is not None
    longest = int(problem.input_tokens.max()) + problem.longest_output
    room = number("fit", fit, 1.0) * longest * problem.draft.kv_bytes_per_token
    return dataclasses.replace(
        problem,
        name=f"tight-memory {pair} K={tasks} fit={fit:g} O<={max_output} seed={seed}",
        draft_memory_bytes=1.0001
        * (problem.draft.parameter_bytes + room),  # after any later rounding, `fit` tasks fit
    )
