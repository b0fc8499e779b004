"""Families of prompt chunking: the testbed of paper 4, random links and clouds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from helpers.families import problem_of

from specopt import PromptChunkingProblem
from specopt.instances.prompt_chunking.workload import LAYER_PARAMETERS

make = partial(problem_of, PromptChunkingProblem)


def test_paper_4() -> None:
    """Tests that hidden sizes are 4096 and 5120 at two bytes, MB are 10^6 bytes, and g has the
    knots of Fig. 1, scaled for the larger model.
    """
    problem = make("paper-4", prompt_tokens=351)
    assert (problem.prompt_tokens, problem.bytes_per_token, problem.pipeline_length) == (
        351,
        8192.0,
        4,
    )
    assert (problem.uplink_bytes_per_second, problem.downlink_bytes_per_second) == (7.5e6, 12.5e6)
    assert (problem.background_tokens, problem.message_overhead_seconds) == (10.0, 3e-3)
    assert problem.cloud_delay.at(512.0) == 0.071217721
    larger = make("paper-4", model="vicuna-13b")
    assert larger.bytes_per_token == 10240.0
    assert larger.cloud_delay.at(512.0) == pytest.approx(
        0.071217721 * (37 * LAYER_PARAMETERS["vicuna-13b"]) / (30 * LAYER_PARAMETERS["vicuna-7b"])
    )


def test_random_in_its_ranges() -> None:
    """Tests that links are in the paper's ranges, and that g rises."""
    for seed in range(20):
        problem = make("random", seed=seed, knots=2 + seed % 5)
        assert (
            5e6
            <= problem.uplink_bytes_per_second
            <= 10e6
            <= problem.downlink_bytes_per_second
            <= 15e6
        )
        assert len(problem.cloud_delay.tokens) == 2 + seed % 5
        assert np.all(problem.cloud_delay.slopes > 0)


def test_random_modes() -> None:
    """Tests that pipeline, wait, download and message cost can be chosen."""
    problem = make(
        "random", pipeline_length=3, wait="none", download="last", max_message_milliseconds=0.0
    )
    assert (problem.pipeline_length, problem.wait, problem.download) == (3, "none", "last")
    assert problem.message_overhead_seconds == 0.0
