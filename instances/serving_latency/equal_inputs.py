"""Tasks of one input length: only the sizes of the batches and their order matter."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.models.arguments import integer
from specopt.models.fields import MAX_TOKENS
from specopt.models.serving_latency.problem import ServingLatencyProblem


def equal_inputs(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    tokens: int = 256,
    max_output: int = 512,
    seed: int = 0,
) -> ServingLatencyProblem:
    """Tasks with prompts of exactly the same length, in the setting of paper 1.

    Difficulty: nothing is padded, every task can replace every other, and many plans tie. Searches
    that branch on tasks meet each plan in as many forms as there are permutations.

    Parameters
    ----------
    pair
        Draft and verify model, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    tokens
        Input tokens of every task.
    max_output
        Largest output length O_max.
    seed
        Seed of `numpy.random.default_rng`, for the channels and the output lengths.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    return dataclasses.replace(
        problem,
        name=f"equal-inputs {pair} K={tasks} I={tokens} O<={max_output} seed={seed}",
        input_tokens=np.full(tasks, integer("tokens", tokens, 1, MAX_TOKENS)),
    )
