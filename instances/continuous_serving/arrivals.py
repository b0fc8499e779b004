"""Tasks that arrive one by one, and are served in batches that change from step to step."""

from __future__ import annotations

import numpy as np

from specopt.instances.serving_latency.paper_1 import paper_1
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
    """The setting of paper 1 with Poisson arrivals; the mean latency counts, every mechanism and
    pauses are allowed.

    What makes it hard: drafting pays while few tasks are at hand, and prompts that were not drafted
    for have to be caught up on.

    Parameters
    ----------
    pair, tasks, max_input, max_output, alpha, bandwidth, seed
        As in `paper_1`; output lengths count as they are.
    requests_per_second
        Rate of the arrivals.
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
    return ContinuousServingProblem(
        **problem.shared_fields()
        | {
            "name": (
                f"arrivals {pair} K={tasks} {requests_per_second:g}/s alpha={alpha:g} seed={seed}"
            ),
            "output_lengths": "known",
            "mechanism": "any",
        },
        arrival_seconds=np.cumsum(
            np.random.default_rng((seed, 1)).exponential(1.0 / rate, size=tasks)
        ),
        objective="mean_latency",
        min_speculation_length=0,
    )
