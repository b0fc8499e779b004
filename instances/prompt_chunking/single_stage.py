"""A cloud of one GPU: no pipeline, every chunk waits for its predecessor."""

from __future__ import annotations

import dataclasses

from specopt.instances.prompt_chunking.random import random
from specopt.models.arguments import positive
from specopt.models.prompt_chunking.problem import PromptChunkingProblem


def single_stage(
    *, prompt_tokens: int = 1000, cloud_slowness: float = 3.0, wait: str = "serial", seed: int = 0
) -> PromptChunkingProblem:
    """A random link with one slow GPU behind it.

    Difficulty: the cloud is the bottleneck, and every chunk pays the fixed cost of a batch in full.
    With a serial wait each chunk also waits for the running batch. Upload, cloud and download can
    each be critical.

    Parameters
    ----------
    prompt_tokens
        Prompt length N, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    cloud_slowness
        Factor on the cloud delay.
    wait
        Rule for waiting in the cloud, as in the problem.
    """
    problem = random(prompt_tokens=prompt_tokens, pipeline_length=1, wait=wait, seed=seed)
    cloud_slowness = positive("cloud_slowness", cloud_slowness)
    delay = problem.cloud_delay
    return dataclasses.replace(
        problem,
        name=f"single-stage N={prompt_tokens} x{cloud_slowness:g} {wait} seed={seed}",
        cloud_delay=dataclasses.replace(delay, seconds=delay.seconds * cloud_slowness),
    )
