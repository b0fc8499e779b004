"""A family of prompts on random links and clouds.

Bandwidths are drawn from the ranges of paper 4, and cloud delays are random increasing functions.
"""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number, random_generator
from specopt.models.fields import MAX_TOKENS
from specopt.models.pass_time import CloudDelay
from specopt.models.prompt_chunking.problem import PromptChunkingProblem


def random(
    *,
    prompt_tokens: int = 1000,
    pipeline_length: int = 0,
    knots: int = 5,
    wait: str = "serial",
    download: str = "all",
    max_message_milliseconds: float = 5.0,
    seed: int = 0,
) -> PromptChunkingProblem:
    """A prompt on a random link and cloud.

    The uplink rate is uniform on 5-10 MB/s, and the downlink rate is uniform on 10-15 MB/s. The
    cloud delay is piecewise linear, and neither convex nor concave. The delay starts at 5-40 ms.
    The slopes of the delay are log-uniform on 10^-5.5 to 10^-3.5 seconds per token. The distances
    between breakpoints are log-uniform up to twice the prompt length. The device takes up to 1 ms
    per chunk. Per token, the device also takes up to 30 % of the time to upload a token.

    Parameters
    ----------
    prompt_tokens
        Prompt length N.
    pipeline_length
        Number P of pipeline stages; 0 means a random choice from 1, 2, 4 and 8.
    knots
        Number of points that define the cloud delay, at least 2.
    wait
        Rule for waiting in the cloud, as in the problem.
    download
        Chunks that are downloaded, as in the problem.
    max_message_milliseconds
        Upper end of the uniform distribution of the message overhead.
    seed
        Seed of `numpy.random.default_rng`.
    """
    prompt_tokens = integer("prompt_tokens", prompt_tokens, 1, MAX_TOKENS)
    knots = integer("knots", knots, 2, MAX_TOKENS)
    max_message_milliseconds = number("max_message_milliseconds", max_message_milliseconds, 0)
    rng = random_generator(seed)
    up = 1e6 * rng.uniform(5, 10)
    down = 1e6 * rng.uniform(10, 15)
    stages = integer("pipeline_length", pipeline_length, 0, MAX_TOKENS) or int(
        rng.choice((1, 2, 4, 8))
    )
    steps = np.exp(rng.uniform(0, np.log(2.0 * prompt_tokens + 16), knots - 1))
    tokens = np.concatenate(([0.0], np.cumsum(steps + 1.0)))
    slopes = 10 ** rng.uniform(-5.5, -3.5, knots - 1)
    seconds = rng.uniform(0.005, 0.04) + np.concatenate(
        ([0.0], np.cumsum(slopes * np.diff(tokens)))
    )
    bytes_per_token = float(rng.choice((8192.0, 10240.0)))
    return PromptChunkingProblem(
        prompt_tokens=prompt_tokens,
        bytes_per_token=bytes_per_token,
        uplink_bytes_per_second=up,
        downlink_bytes_per_second=down,
        cloud_delay=CloudDelay(tokens=tokens, seconds=seconds),
        background_tokens=float(rng.integers(0, 40)),
        pipeline_length=stages,
        local_overhead_seconds=rng.uniform(0, 1e-3),
        local_seconds_per_token=rng.uniform(0, 0.3) * bytes_per_token / up,
        message_overhead_seconds=1e-3 * rng.uniform(0, max_message_milliseconds)
        if max_message_milliseconds
        else 0.0,
        link_latency_seconds=rng.uniform(0, 0.01),
        wait=wait,  # type: ignore[arg-type]  # the problem checks it
        download=download,  # type: ignore[arg-type]
    )
