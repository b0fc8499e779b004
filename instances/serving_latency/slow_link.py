"""A narrow band: uploads take longer than inference."""

from __future__ import annotations

import dataclasses

from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.models.arguments import number, positive
from specopt.models.serving_latency.problem import ServingLatencyProblem


def slow_link(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 40,
    bandwidth: float = 0.5e6,
    loss_decibels: float = 20.0,
    max_output: int = 64,
    seed: int = 0,
) -> ServingLatencyProblem:
    """Short answers over a narrow band with weak signals; otherwise the setting of paper 1.

    Difficulty: most of the latency is the upload, so the bandwidth shares are decisive. The same
    seconds of inference are a small share of the objective, so relative gaps look smaller than they
    are.

    Parameters
    ----------
    pair
        Draft and verify model, as in `paper_1`.
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
    loss_decibels = number("loss_decibels", loss_decibels, 0.0, 200.0)
    problem = paper_1(pair=pair, tasks=tasks, max_output=max_output, bandwidth=bandwidth, seed=seed)
    return dataclasses.replace(
        problem,
        name=(
            f"slow-link {pair} K={tasks} {bandwidth:g} Hz -{loss_decibels:g} dB O<={max_output}"
            f" seed={seed}"
        ),
        snr=problem.snr * 10.0 ** (-loss_decibels / 10.0),
    )
