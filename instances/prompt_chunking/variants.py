"""Families of prompts on random links and clouds. Each family has one extreme property."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.prompt_chunking.random import random
from specopt.models.arguments import integer, number, positive
from specopt.models.fields import MAX_TOKENS
from specopt.models.pass_time import CloudDelay
from specopt.models.prompt_chunking.problem import PromptChunkingProblem


def single_stage(
    *, prompt_tokens: int = 1000, cloud_slowness: float = 3.0, wait: str = "serial", seed: int = 0
) -> PromptChunkingProblem:
    """A random link to a cloud with a single slow GPU.

    Difficulty: every chunk incurs the full fixed cost of a batch, because there is only one stage.
    With a serial wait, each chunk also waits for the running batch. Although the cloud is usually
    the bottleneck, the upload, the cloud or the download may be on the critical path, depending on
    the plan.

    Parameters
    ----------
    prompt_tokens
        Prompt length N, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    cloud_slowness
        Factor by which the cloud delay is multiplied.
    wait
        Rule for waiting in the cloud, as in the problem.
    """
    problem = random(prompt_tokens=prompt_tokens, pipeline_length=1, wait=wait, seed=seed)
    delay = problem.cloud_delay
    seconds = delay.seconds * positive("cloud_slowness", cloud_slowness)
    return dataclasses.replace(
        problem,
        cloud_delay=dataclasses.replace(delay, seconds=seconds),
    )


def slow_link(
    *, prompt_tokens: int = 1000, slowness: float = 20.0, download: str = "all", seed: int = 0
) -> PromptChunkingProblem:
    """A random cloud behind slow links, whose downlink is barely faster than the uplink.

    Difficulty: the last chunk can be downloaded only after its upload, so the last chunks must be
    small although each message and each batch has a cost. The possible improvement is a small
    fraction of the total time, and gaps close slowly.

    Parameters
    ----------
    prompt_tokens
        Prompt length N, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    slowness
        Factor by which both links are slower than in paper 4 (5-10 MB/s up, 10-15 MB/s down).
    download
        Chunks that are downloaded, as in the problem.
    """
    problem = random(prompt_tokens=prompt_tokens, download=download, seed=seed)
    up = problem.uplink_bytes_per_second / positive("slowness", slowness)
    return dataclasses.replace(
        problem,
        uplink_bytes_per_second=up,
        downlink_bytes_per_second=1.1 * up,
    )


def slow_message(
    *, prompt_tokens: int = 1000, message_milliseconds: float = 50.0, seed: int = 0
) -> PromptChunkingProblem:
    """A random link and cloud on which each message has an overhead of tens of milliseconds.

    Difficulty: the best plan has few chunks of very different sizes, and adding or removing a chunk
    changes all sizes. Eq. 3 of paper 4 ignores the message overhead and yields far too many chunks.

    Parameters
    ----------
    prompt_tokens
        Prompt length N, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    message_milliseconds
        Overhead of each uploaded chunk, in addition to the time to upload the chunk's bytes.
    """
    return dataclasses.replace(
        random(prompt_tokens=prompt_tokens, seed=seed),
        message_overhead_seconds=1e-3 * number("message_milliseconds", message_milliseconds, 0),
    )


def steep_cloud(
    *,
    prompt_tokens: int = 1000,
    step_tokens: int = 128,
    step_milliseconds: float = 15.0,
    seed: int = 0,
) -> PromptChunkingProblem:
    """A cloud delay that is constant except for a jump of several milliseconds every n tokens.

    Difficulty: the delay is neither convex nor concave, the best chunks end just before a jump, and
    Eq. 3 of paper 4 has several roots or no root.

    Parameters
    ----------
    prompt_tokens
        Prompt length N, as in `random`.
    seed
        Seed of the random generator, as in `random`.
    step_tokens
        Number of tokens n between two jumps, at least 2.
    step_milliseconds
        Height of a jump, in milliseconds.
    """
    problem = random(prompt_tokens=prompt_tokens, seed=seed)
    width = integer("step_tokens", step_tokens, 2, MAX_TOKENS)
    height = 1e-3 * positive("step_milliseconds", step_milliseconds)
    edges = np.arange(width, 2 * prompt_tokens + 2 * width, width, dtype=np.float64)
    levels = 0.01 + height * np.arange(len(edges) + 1)
    tokens = np.concatenate(([0.0], np.column_stack((edges, edges + 1.0)).ravel()))
    return dataclasses.replace(
        problem,
        cloud_delay=CloudDelay(
            tokens=tokens, seconds=np.concatenate((np.repeat(levels[:-1], 2), levels[-1:]))
        ),
    )
