"""A family in which the tasks of paper 1 are served in batches that change from step to step."""

from __future__ import annotations

from specopt.instances.serving_latency.paper_1 import paper_1 as with_fixed_batches
from specopt.models.continuous_serving.problem import ContinuousServingProblem


def paper_1(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 100,
    max_input: int = 512,
    max_output: int = 2048,
    alpha: float = 0.8,
    bandwidth: float = 20e6,
    seed: int = 0,
) -> ContinuousServingProblem:
    """The tasks of `serving-latency/paper-1`, all of which are present at the start.

    A task leaves the batch when its output is complete.

    Difficulty: finished tasks release memory, so the best batches change from step to step.

    Parameters
    ----------
    pair
        Name of the pair of draft and verify models, as in `serving-latency/paper-1`.
    tasks
        Number of tasks K, as in `serving-latency/paper-1`.
    max_input
        Largest input length, as in `serving-latency/paper-1`.
    max_output
        Largest output length O_max, as in `serving-latency/paper-1`.
    alpha
        Acceptance rate, as in `serving-latency/paper-1`.
    bandwidth
        Uplink bandwidth in hertz, as in `serving-latency/paper-1`.
    seed
        Seed of the random generator, as in `serving-latency/paper-1`.
    """
    problem = with_fixed_batches(
        pair=pair,
        tasks=tasks,
        max_input=max_input,
        max_output=max_output,
        alpha=alpha,
        bandwidth=bandwidth,
        seed=seed,
    )
    return ContinuousServingProblem(**problem.shared_fields())
