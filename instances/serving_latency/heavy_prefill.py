"""Long prompts and short answers: Algorithm 1 of paper 1 is far from optimal here."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.models.arguments import integer
from specopt.models.fields import MAX_TOKENS
from specopt.models.serving_latency.problem import ServingLatencyProblem


def heavy_prefill(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 8,
    max_input: int = 8192,
    max_output: int = 16,
    seed: int = 0,
) -> ServingLatencyProblem:
    """Prompts of log-uniform length and answers of a few tokens; otherwise the setting of paper 1.

    Difficulty: the prefill step takes most of the latency, and its draft stage takes longer than
    its verification. The batch verified last should then be a short one (Johnson's rule for one
    step). Algorithm 1 orders the batches by ascending input and ends with the longest prompts: up
    to 14 % above the optimum.

    Parameters
    ----------
    pair
        Draft and verify model, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    max_input
        Largest input length; input lengths are log-uniform on 8..max_input.
    max_output
        Largest output length O_max.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    logarithms = np.random.default_rng((seed, 1)).uniform(
        np.log(8.0), np.log(integer("max_input", max_input, 8, MAX_TOKENS)), tasks
    )
    return dataclasses.replace(
        problem,
        name=f"heavy-prefill {pair} K={tasks} I<={max_input} O<={max_output} seed={seed}",
        input_tokens=np.exp(logarithms).astype(np.int64),
    )
