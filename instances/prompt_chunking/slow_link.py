"""A link in a weak cell: the upload takes nearly all of the time."""

from __future__ import annotations

import dataclasses

from specopt.instances.prompt_chunking.random import random
from specopt.models.arguments import positive
from specopt.models.prompt_chunking.problem import PromptChunkingProblem


def slow_link(
    *, prompt_tokens: int = 1000, slowness: float = 20.0, download: str = "all", seed: int = 0
) -> PromptChunkingProblem:
    """A random cloud behind links slowed by a factor; the downlink is barely faster than the
    uplink.

    Difficulty: the download of the last chunk follows its upload, so the last chunks must be small,
    although messages and batches still have a cost. The gain is a small share of a long time, and
    gaps close slowly.

    Parameters
    ----------
    prompt_tokens
        Prompt length N, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    slowness
        Factor by which both links are slower than in paper 4 (5-10 MB/s up, 10-15 MB/s down).
    download
        Downloaded chunks, as in the problem.
    """
    problem = random(prompt_tokens=prompt_tokens, download=download, seed=seed)
    up = problem.uplink_bytes_per_second / positive("slowness", slowness)
    return dataclasses.replace(
        problem,
        name=f"slow-link N={prompt_tokens} slowness={slowness:g} {download} seed={seed}",
        uplink_bytes_per_second=up,
        downlink_bytes_per_second=1.1 * up,
    )
