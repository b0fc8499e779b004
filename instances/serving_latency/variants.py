"""Variants of the setting of paper 1.

Each variant is hard for a different reason.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.serving_latency.paper_1 import DRAFT_RUNTIME, paper_1
from specopt.models.arguments import integer, number, positive
from specopt.models.fields import MAX_TOKENS
from specopt.models.pass_time import LinearRuntime
from specopt.models.serving_latency.problem import ServingLatencyProblem


def equal_inputs(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    tokens: int = 256,
    max_output: int = 512,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1, but with prompts that all have the same length.

    Difficulty: nothing is padded, all tasks are interchangeable, and many plans tie. Searches that
    branch on tasks encounter every plan once for each permutation of equal tasks.

    Parameters
    ----------
    pair
        Draft and verify models, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    tokens
        Number of input tokens of every task.
    max_output
        Largest output length O_max.
    seed
        Seed of `numpy.random.default_rng`, for the channels and the output lengths.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    return dataclasses.replace(
        problem,
        input_tokens=np.full(tasks, integer("tokens", tokens, 1, MAX_TOKENS)),
    )


def heavy_prefill(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 8,
    max_input: int = 8192,
    max_output: int = 16,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1, but with log-uniform prompt lengths and outputs of only a few tokens.

    Difficulty: the prefill step accounts for most of the latency, and its draft stage is longer
    than its verification. The batch verified last should therefore be a short batch (Johnson's rule
    for one step). Algorithm 1 sorts the batches by ascending input length, so the longest prompts
    come last. The resulting latency is up to 14 % above the optimum.

    Parameters
    ----------
    pair
        Draft and verify models, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    max_input
        Largest input length; input lengths are log-uniform on 8..max_input.
    max_output
        Largest output length O_max.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    logarithms = np.random.default_rng((seed, 1)).uniform(
        np.log(8.0), np.log(integer("max_input", max_input, 8, MAX_TOKENS)), tasks
    )
    return dataclasses.replace(
        problem,
        input_tokens=np.exp(logarithms).astype(np.int64),
    )


def known_lengths(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    max_output: int = 1024,
    long_share: float = 0.2,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1, but with known output lengths and a mixture of long and short
    outputs.

    Difficulty: a batch lasts until its longest output is complete. The best batches contain tasks
    with similar input and output lengths and have a suitable size. Contiguous batches in order of
    input length are no longer sufficient, and the exact methods can handle only a few tasks.

    Parameters
    ----------
    pair
        Draft and verify models, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    max_output
        Largest output length O_max.
    long_share
        Probability that an output length is uniform on 1..max_output. Otherwise, the length is
        uniform on 1..max_output / 10.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    short = np.random.default_rng((seed, 1)).uniform(size=tasks) >= number(
        "long_share", long_share, 0.0, 1.0
    )
    return dataclasses.replace(
        problem,
        output_tokens=np.where(short, -(-problem.output_tokens // 10), problem.output_tokens),
        output_lengths="known",
    )


def slow_link(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    bandwidth: float = 0.5e6,
    loss_decibels: float = 20.0,
    max_output: int = 64,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1, but with short outputs, low bandwidth and weak signals.

    Difficulty: most of the latency is upload time, so the bandwidth shares are decisive. The
    inference time is a small fraction of the objective, so relative gaps look smaller than they
    are.

    Parameters
    ----------
    pair
        Draft and verify models, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    bandwidth
        Uplink bandwidth in hertz, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    loss_decibels
        Attenuation of every signal compared with paper 1, in decibels.
    max_output
        Largest output length O_max.
    """
    bandwidth = positive("bandwidth", bandwidth)
    loss = number("loss_decibels", loss_decibels, 0.0, 200.0)
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, bandwidth=bandwidth, seed=seed)
    return dataclasses.replace(problem, snr=problem.snr * 10.0 ** (-loss / 10.0))


def stage_ratio(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    factor: float = 20.0,
    max_output: int = 512,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1, but with a draft device that is slower or faster by a factor.

    Difficulty: if the draft device is slow, every batch waits for drafts and only the last
    verification matters. If the draft device is fast, only the first draft matters. Heuristics for
    balanced stages put the wrong batch in these positions, and the best speculation length is at an
    end of its range.

    Parameters
    ----------
    pair
        Draft and verify models, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    factor
        Factor by which the drafting times of Table II are multiplied. If the factor is below 1, the
        draft device is faster.
    max_output
        Largest output length O_max.
    """
    factor = positive("factor", factor)
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    return dataclasses.replace(
        problem,
        draft_runtime=LinearRuntime(
            seconds_per_flop=factor * DRAFT_RUNTIME.seconds_per_flop,
            overhead_seconds=factor * DRAFT_RUNTIME.overhead_seconds,
        ),
    )


def tight_memory(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    fit: float = 3.0,
    max_output: int = 512,
    seed: int = 0,
) -> ServingLatencyProblem:
    """The setting of paper 1, but with draft memory for only a few of the longest tasks (Eq. 9-10).

    Difficulty: batches of long prompts must be small, whereas batches of short prompts may be
    large, so the best batch sizes differ along the pipeline. There are many batches, which can be
    ordered in many ways. Fixed batch sizes waste either memory or verification time.

    Parameters
    ----------
    pair
        Draft and verify models, as in `paper_1`.
    tasks
        Number of tasks K, as in `paper_1`.
    seed
        Seed of the random generator, as in `paper_1`.
    fit
        Number of tasks with the longest input that fit in memory alongside the draft model; at
        least 1.
    max_output
        Largest output length O_max.
    """
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, seed=seed)
    assert problem.draft is not None
    longest = int(problem.input_tokens.max()) + problem.longest_output
    room = number("fit", fit, 1.0) * longest * problem.draft.kv_bytes_per_token
    return dataclasses.replace(
        problem,
        draft_memory_bytes=1.0001
        * (problem.draft.parameter_bytes + room),  # `fit` tasks fit even after rounding
    )
