"""Messages with a large overhead that does not depend on their size."""

from __future__ import annotations

import dataclasses

from specopt.instances.prompt_chunking.random import random
from specopt.models.arguments import number
from specopt.models.prompt_chunking.problem import PromptChunkingProblem


def slow_message(
    *, prompt_tokens: int = 1000, message_milliseconds: float = 50.0, seed: int = 0
) -> PromptChunkingProblem:
    """A random link and cloud with an overhead of tens of milliseconds per message.

    Difficulty: few chunks of very different sizes are best, and adding or removing one changes all
    of them. Eq. 3 of paper 4 ignores the overhead of a message and sends far too many.

    Parameters
    ----------
    prompt_tokens
        Prompt length N, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    message_milliseconds
        Overhead of each uploaded chunk, in addition to its bytes.
    """
    message_milliseconds = number("message_milliseconds", message_milliseconds, 0)
    return dataclasses.replace(
        random(prompt_tokens=prompt_tokens, seed=seed),
        name=f"slow-message N={prompt_tokens} {message_milliseconds:g} ms seed={seed}",
        message_overhead_seconds=1e-3 * message_milliseconds,
    )
