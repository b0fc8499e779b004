"""Messages that cost much, whatever their size."""

from __future__ import annotations

import dataclasses

from specopt.instances.prompt_chunking.random import random
from specopt.models.arguments import number
from specopt.models.prompt_chunking.problem import PromptChunkingProblem


def slow_message(
    *, prompt_tokens: int = 1000, message_milliseconds: float = 50.0, seed: int = 0
) -> PromptChunkingProblem:
    """A random link and cloud on which every message costs tens of milliseconds.

    What makes it hard: few chunks are best, of very different sizes, and each one more or less
    changes them all. Eq. 3 of paper 4 ignores the cost of a message and sends far too many.

    Parameters
    ----------
    prompt_tokens, seed
        As in `random`.
    message_milliseconds
        What each uploaded chunk costs on top of its bytes.
    """
    message_milliseconds = number("message_milliseconds", message_milliseconds, 0)
    return dataclasses.replace(
        random(prompt_tokens=prompt_tokens, seed=seed),
        name=f"slow-message N={prompt_tokens} {message_milliseconds:g} ms seed={seed}",
        message_overhead_seconds=1e-3 * message_milliseconds,
    )
