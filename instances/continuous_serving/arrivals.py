"""A family whose tasks arrive over time and are served in batches that change from step to step."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.continuous_serving.paper_1 import paper_1
from specopt.models.arguments import positive
from specopt.models.continuous_serving.problem import ContinuousServingProblem


def arrivals(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 100,
    requests_per_second: float = 1.0,
    max_input: int = 512,
    max_output: int = 512,
    alpha: float = 0.8,
    bandwidth: float = 20e6,
    seed: int = 0,
) -> ContinuousServingProblem:
    """The setting of paper 1, but with Poisson arrivals.

    The objective is the mean latency. All mechanisms are allowed, as are steps without drafts.

    Difficulty: drafting pays off while few tasks are active, and the draft model must catch up on
    prompts for which it did not draft.

    Parameters
    ----------
    pair
        Name of the pair of draft and verify models, as in `paper_1`.
    tasks
        Number of tasks K.
    requests_per_second
        Mean arrival rate, in requests per second.
    max_input
        Largest input length.
    max_output
        Largest output length. Output lengths are known to the planner.
    alpha
        Acceptance rate.
    bandwidth
        Uplink bandwidth in hertz.
    seed
        Seed of `numpy.random.default_rng`.
    """
    rate = positive("requests_per_second", requests_per_second)
    problem = paper_1(
        pair=pair,
        tasks=tasks,
        max_input=max_input,
        max_output=max_output,
        alpha=alpha,
        bandwidth=bandwidth,
        seed=seed,
    )
    return dataclasses.replace(
        problem,
        output_lengths="known",
        mechanism="any",
        arrival_seconds=np.cumsum(
            np.random.default_rng((seed, 1)).exponential(1.0 / rate, size=tasks)
        ),
        objective="mean_latency",
        min_speculation_length=0,
    )
