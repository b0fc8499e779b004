"""One stage of the pipeline that is much slower than the other."""

from __future__ import annotations

import dataclasses

from specopt.instances.serving_latency.paper_1 import DRAFT_RUNTIME, paper_1
from specopt.models.arguments import positive
from specopt.models.pass_time import LinearRuntime
from specopt.models.serving_latency.problem import ServingLatencyProblem


def stage_ratio(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    factor: float = 20.0,
    max_output: int = 512,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1 with a draft device that is slower, or faster, by a factor.

    Difficulty: with a slow draft device every batch waits for drafts and only the last verification
    matters; with a fast one only the first draft matters. Heuristics for balanced stages put the
    wrong batch there, and the best speculation length moves to an end of its range.

    Parameters
    ----------
    pair
        Draft and verify model, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    factor
        Ratio of the draft stage's seconds to those of Table II; the stage is faster below 1.
    max_output
        Largest output length O_max.
    """
    factor = positive("factor", factor)
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    return dataclasses.replace(
        problem,
        name=f"stage-ratio {pair} K={tasks} factor={factor:g} O<={max_output} seed={seed}",
        draft_runtime=LinearRuntime(
            seconds_per_flop=factor * DRAFT_RUNTIME.seconds_per_flop,
            overhead_seconds=factor * DRAFT_RUNTIME.overhead_seconds,
        ),
    )
