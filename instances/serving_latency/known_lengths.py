"""Output lengths known in advance, some short and some long."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.models.arguments import number
from specopt.models.serving_latency.problem import ServingLatencyProblem


def known_lengths(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    max_output: int = 1024,
    long_share: float = 0.2,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1 with known output lengths: a share of them is long, the others are a
    tenth of that.

    Difficulty: a batch lasts as long as its longest answer. Each task is best batched with tasks of
    a similar output length and a similar input length, in batches of a good size. Contiguous
    batches in sorted input are no longer sufficient, and the exact methods here handle only a few
    tasks.

    Parameters
    ----------
    pair
        Draft and verify model, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    max_output
        Largest output length O_max.
    long_share
        Probability that an output length is uniform on 1..max_output; otherwise it is uniform on
        1..max_output / 10.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    short = np.random.default_rng((seed, 1)).uniform(size=tasks) >= number(
        "long_share", long_share, 0.0, 1.0
    )
    return dataclasses.replace(
        problem,
        name=f"known-lengths {pair} K={tasks} O<={max_output} long={long_share:g} seed={seed}",
        output_tokens=np.where(short, -(-problem.output_tokens // 10), problem.output_tokens),
        output_lengths="known",
    )
