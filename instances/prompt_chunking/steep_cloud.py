"""A cloud delay with steps: batches are cheap up to certain sizes and costly beyond."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.prompt_chunking.random import random
from specopt.models.arguments import integer, positive
from specopt.models.fields import MAX_TOKENS
from specopt.models.pass_time import CloudDelay
from specopt.models.prompt_chunking.problem import PromptChunkingProblem


def steep_cloud(
    *,
    prompt_tokens: int = 1000,
    step_tokens: int = 128,
    step_milliseconds: float = 15.0,
    seed: int = 0,
) -> PromptChunkingProblem:
    """A cloud delay that jumps by milliseconds within one token every n tokens and is flat in
    between.

    Difficulty: the delay is neither convex nor concave, the best chunks end just before a step, and
    Eq. 3 of paper 4 has several roots or no root.

    Parameters
    ----------
    prompt_tokens
        Prompt length N, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    step_tokens
        Number of tokens from one step to the next, at least 2.
    step_milliseconds
        Height of a step.
    """
    problem = random(prompt_tokens=prompt_tokens, seed=seed)
    width = integer("step_tokens", step_tokens, 2, MAX_TOKENS)
    height = 1e-3 * positive("step_milliseconds", step_milliseconds)
    edges = np.arange(width, 2 * prompt_tokens + 2 * width, width, dtype=np.float64)
    levels = 0.01 + height * np.arange(len(edges) + 1)
    tokens = np.concatenate(([0.0], np.column_stack((edges, edges + 1.0)).ravel()))
    return dataclasses.replace(
        problem,
        name=f"steep-cloud N={prompt_tokens} every {step_tokens} tokens seed={seed}",
        cloud_delay=CloudDelay(
            tokens=tokens, seconds=np.concatenate((np.repeat(levels[:-1], 2), levels[-1:]))
        ),
    )
