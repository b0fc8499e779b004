"""Long prompts and short answers: where Algorithm 1 of paper 1 is far from the best."""

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
    """Prompts of log-uniform length and answers of a few tokens, else the setting of paper 1.

    What makes it hard: the prefill step is most of the latency, and its draft stage takes longer
    than its verification. Then the batch verified last should be a short one (Johnson's rule for
    one step). Algorithm 1 takes the batches by ascending input and ends with the longest prompts:
    up to 14 % above the optimum.

    Parameters
    ----------
    pair, tasks, seed
        As in `paper_1`.
    max_input
        Input lengths are log-uniform on 8..max_input.
    max_output
        O_max.
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
