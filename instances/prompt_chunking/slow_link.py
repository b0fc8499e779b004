"""A link of a weak cell: upload is nearly everything."""

from __future__ import annotations

import dataclasses

from specopt.instances.prompt_chunking.random import random
from specopt.models.arguments import positive
from specopt.models.prompt_chunking.problem import PromptChunkingProblem


def slow_link(
    *, prompt_tokens: int = 1000, slowness: float = 20.0, download: str = "all", seed: int = 0
) -> PromptChunkingProblem:
    """A random cloud behind links slower by a factor; the downlink barely faster than the uplink.

    What makes it hard: the download of the last chunk follows its upload, so the last chunks must
    be small while messages and batches still cost. The gain is a small share of a long time, and
    gaps close slowly.

    Parameters
    ----------
    prompt_tokens, seed
        As in `random`.
    slowness
        What both links are slower by than the 5-10 MB/s up and 10-15 MB/s down of paper 4.
    download
        As in the problem.
    """
    problem = random(prompt_tokens=prompt_tokens, download=download, seed=seed)
    up = problem.uplink_bytes_per_second / positive("slowness", slowness)
    return dataclasses.replace(
        problem,
        name=f"slow-link N={prompt_tokens} slowness={slowness:g} {download} seed={seed}",
        uplink_bytes_per_second=up,
        downlink_bytes_per_second=1.1 * up,
    )
