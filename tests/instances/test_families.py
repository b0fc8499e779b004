"""Generated problems, and the published setting that they follow."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from helpers.families import problem_of

from specopt import InvalidInput, LinearRuntime, PaperDecoder, ServingLatencyProblem, generate
from specopt.api.generate import FAMILIES

WITHOUT_DRAWS = {
    "prompt-chunking/paper-4",
    "draft-allocation/paper-5",
    "draft-allocation/ties",
    "fair-goodput/paper-5",
    "draft-control/paper-3",
    "draft-control/alternating",
    "draft-stopping/mixed",
    "draft-stopping/paper-2",
    "placement/edge-cloud",
}
"""Families that follow from their parameters alone."""

make = partial(problem_of, ServingLatencyProblem, "paper-1")


def test_table_2() -> None:
    """Tests that the defaults are those of Tables I and II of paper 1."""
    problem = make()
    assert problem.tasks == 100
    assert problem.longest_output == 2048
    assert problem.max_speculation_length == 10
    assert problem.bandwidth_hz == 20e6
    assert problem.draft_memory_bytes == 16e9
    assert problem.acceptance_rate == 0.8
    assert problem.draft_runtime == LinearRuntime(
        seconds_per_flop=4.11e-13, overhead_seconds=0.56e-3
    )
    assert problem.verify_runtime == LinearRuntime(
        seconds_per_flop=2.08e-14, overhead_seconds=1.28e-2
    )
    assert problem.mechanism == "pipelined"
    assert problem.output_lengths == "conservative"
    assert problem.verify_memory_bytes is None


@pytest.mark.parametrize(
    ("pair", "draft", "verify", "bits"),
    [
        ("68M-7B", (2, 768, 3072), (32, 4096, 11008), 16 * 4864),
        ("1.1B-7B", (22, 2048, 5632), (32, 4096, 11008), 16 * 6144),
        ("1.1B-13B", (22, 2048, 5632), (40, 5120, 13824), 16 * 7168),
    ],
)
def test_table_1(pair: str, draft: tuple[int, ...], verify: tuple[int, ...], bits: int) -> None:
    """Tests that the three pairs have the shapes of Table I, and lambda = 16 (h1 of both)."""
    problem = make(pair=pair, tasks=2)
    for model, shape in ((problem.draft, draft), (problem.verify, verify)):
        assert isinstance(model, PaperDecoder)
        assert (model.layers, model.hidden, model.ffn) == shape
    assert problem.bits_per_token("pipelined") == bits
    assert problem.bits_per_token("autoregressive") == 16 * verify[1]


def test_the_draws_are_the_papers() -> None:
    """Tests that ranges and means over many tasks are right: uniform lengths, a disc of 400 m,
    unit-mean fading.
    """
    problem = make(tasks=20_000, max_input=100, max_output=50, seed=1)
    assert (problem.input_tokens.min(), problem.input_tokens.max()) == (1, 100)
    assert (problem.output_tokens.min(), problem.output_tokens.max()) == (1, 50)
    assert problem.input_tokens.mean() == pytest.approx(50.5, rel=0.02)
    assert problem.output_tokens.mean() == pytest.approx(25.5, rel=0.02)
    # snr = 0.2 x 1e-3 rho / (d^2 10^-13.6); E[log] = log(...) + E[log rho] - 2 E[log d], d = 400
    # sqrt(U)
    expected = np.log(0.2e-3 / 10**-13.6) - np.euler_gamma - 2 * (np.log(400) - 0.5)
    assert np.log(problem.snr).mean() == pytest.approx(expected, abs=0.05)


def test_unknown_families() -> None:
    """Tests that a wrong name lists the right ones."""
    with pytest.raises(
        InvalidInput,
        match=r"family: expected KIND/FAMILY, for example serving-latency/paper-1, got 'paper-1'",
    ):
        generate("paper-1")


@pytest.mark.parametrize("name", FAMILIES)
def test_families_describe_themselves(name: str) -> None:
    """Tests that every family has a summary, defaults with a seed, and a problem of its kind from
    them; and that the seed decides.
    """
    family = FAMILIES[name]
    assert family.summary
    assert family.defaults["seed"] == 0
    problem = generate(name)
    assert problem.kind == name.partition("/")[0]
    assert problem == generate(name, seed=0)
    assert (problem.sha256 == generate(name, seed=1).sha256) == (name in WITHOUT_DRAWS)


def test_names_contain_all_parameters() -> None:
    """Tests that a problem is named after its family and all parameters, given or not."""
    problem = generate("draft-allocation/ties", clients=4, seed=3)
    assert problem.name == "ties clients=4 budget=20 acceptance=0.5 groups=1 seed=3"
