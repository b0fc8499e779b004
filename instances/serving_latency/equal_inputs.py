"""Tasks of one input length: nothing but the sizes of the batches and their order matters."""

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

    What makes it hard: nothing is padded, every task can take every other's place, and many plans
    tie. Searches that branch on tasks see each plan in as many forms as there are permutations.

    Parameters
    ----------
    pair, tasks
        As in `paper_1`.
    tokens
        Input tokens of every task.
    max_output
        O_max.
    seed
        Seed of `numpy.random.default_rng`; it decides the channels and output lengths.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    return dataclasses.replace(
        problem,
        name=f"equal-inputs {pair} K={tasks} I={tokens} O<={max_output} seed={seed}",
        input_tokens=np.full(tasks, integer("tokens", tokens, 1, MAX_TOKENS)),
    )
