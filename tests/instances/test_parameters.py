"""Every parameter of every family refuses values outside its domain by name."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from specopt import InvalidInput
from specopt.api.generate import FAMILIES, WORKLOADS

ALL = FAMILIES | WORKLOADS

WRONG: dict[type[Any], tuple[Any, ...]] = {
    bool: ("x", 2),
    int: ("x", 1.5, True, math.nan),
    float: ("x", True, math.nan, math.inf),
    str: ("no such value", 1),
}
"""Values that no parameter with a default of a type accepts."""


@pytest.mark.parametrize("name", ALL)
def test_values_of_a_wrong_type_are_refused_by_name(name: str) -> None:
    """Tests that text, NaN, infinity, Booleans and fractions are refused where they mean
    nothing.
    """
    family = ALL[name]
    accepted = []
    for parameter, kind in family.plain.items():
        for value in WRONG[kind]:
            try:
                family.generate(**{parameter: value})
            except InvalidInput as error:
                if not re.match(
                    r"[\w.\[\]]+: ", str(error)
                ):  # the parameter, or the field of the problem that it sets
                    accepted.append((parameter, value, str(error)))
            else:
                accepted.append((parameter, value, "accepted"))
    assert accepted == []


@pytest.mark.parametrize(
    ("family", "parameters", "message"),
    [
        (
            "serving-latency/paper-1",
            {"pair": "7B"},
            "pair: expected one of 68M-7B, 1.1B-7B, 1.1B-13B, got '7B'",
        ),
        ("serving-latency/paper-1", {"tasks": 0}, "tasks: expected an integer >= 1, got 0"),
        ("serving-latency/paper-1", {"tasks": 2.0}, "tasks: expected an integer >= 1, got 2.0"),
        (
            "serving-latency/paper-1",
            {"max_output": True},
            "max_output: expected an integer >= 1, got True",
        ),
        ("serving-latency/paper-1", {"alpha": 1.0}, "alpha: expected .*, got 1.0"),
        ("serving-latency/paper-1", {"bandwidth": -1.0}, "bandwidth_hz: expected .*, got -1.0"),
        (
            "serving-latency/paper-1",
            {"colour": 1},
            "colour: serving-latency/paper-1 has no such parameter; it has pair, tasks, ",
        ),
        ("draft-allocation/uniform", {"clients": 0}, "clients: expected an integer >= 1, got 0"),
        ("draft-allocation/uniform", {"budget": 1.5}, "budget: expected an integer >= 0, got 1.5"),
        ("draft-allocation/uniform", {"cap": -1}, "cap: expected an integer >= 0, got -1"),
        (
            "draft-allocation/uniform",
            {"max_acceptance": 1.0},
            "max_acceptance: expected a number in \\[0.3, 1\\)",
        ),
        (
            "draft-allocation/uniform",
            {"weight_spread": 0.5},
            "weight_spread: expected a finite number >= 1, got 0.5",
        ),
        ("draft-allocation/paper-5", {"clients": 5}, r"clients: expected one of 4, 8, got 5"),
        ("draft-allocation/paper-5", {"clients": 4}, r"budget: expected one of 24, 28, got 20"),
        (
            "draft-allocation/paper-5",
            {"rates": "odd"},
            "rates: expected one of equal, mild, wide, extreme, got 'odd'",
        ),
        (
            "draft-control/paper-3",
            {"regime": "odd"},
            "regime: expected one of low, high, got 'odd'",
        ),
        (
            "draft-control/paper-3",
            {"temperature": 0.0},
            "temperature: expected a finite number > 0, got 0.0",
        ),
        (
            "draft-control/paper-3",
            {"high_to_low": 0.0},
            r"high_to_low: expected a number in \(0, 1\], got 0.0",
        ),
        ("draft-control/paper-3", {"loss": 2.0}, r"loss: expected a number in \[0, 1\], got 2.0"),
        (
            "draft-control/random",
            {"states": 0},
            "states: expected an integer from 1 to 10,000, got 0",
        ),
        (
            "draft-control/random",
            {"resolutions": 500},
            "resolutions: expected an integer from 1 to 100, got 500",
        ),
        ("draft-control/random", {"stay": 1.0}, r"stay: expected a number in \[0, 1\), got 1.0"),
        (
            "draft-control/random",
            {"slow_bits_per_second": 0.0},
            "slow_bits_per_second: expected a finite number > 0, got 0.0",
        ),
        (
            "draft-control/random",
            {"downlink_factor": -1.0},
            "downlink_factor: expected a finite number >= 0, got -1.0",
        ),
        (
            "draft-control/alternating",
            {"acceptance_rate": 1.5},
            r"acceptance_rates\[0\]: expected float|acceptance_rates\[0\]: ",
        ),
        (
            "fair-goodput/paper-5",
            {"rates": "odd"},
            "rates: expected one of equal, mild, wide, extreme, got 'odd'",
        ),
        (
            "fair-goodput/per-second",
            {"rates": "odd"},
            "rates: expected one of equal, mild, wide, extreme, got 'odd'",
        ),
        ("fair-goodput/paper-5", {"clients": 0}, "clients: expected an integer >= 1, got 0"),
        ("fair-goodput/per-second", {"clients": 0}, "clients: expected an integer >= 1, got 0"),
        ("fair-goodput/paper-5", {"budget": -1}, "budget: expected an integer >= 0, got -1"),
        ("fair-goodput/per-second", {"budget": -1}, "budget: expected an integer >= 0, got -1"),
        ("fair-goodput/paper-5", {"budget": 2.5}, "budget: expected an integer >= 0, got 2.5"),
        ("fair-goodput/per-second", {"budget": 2.5}, "budget: expected an integer >= 0, got 2.5"),
        (
            "fair-goodput/paper-5",
            {"fairness": -1.0},
            "fairness: expected a finite number >= 0, got -1.0",
        ),
        (
            "fair-goodput/per-second",
            {"fairness": -1.0},
            "fairness: expected a finite number >= 0, got -1.0",
        ),
        ("verification-batch/warm", {"requests": -1}, "requests: expected an integer >= 0, got -1"),
        (
            "verification-batch/warm",
            {"coefficients": "odd"},
            "coefficients: expected one of table-12, section-4.4, got 'odd'",
        ),
        (
            "verification-batch/mixed",
            {"cold_share": 1.5},
            r"cold_share: expected a number in \[0, 1\], got 1.5",
        ),
        (
            "verification-batch/tight",
            {"longest_seconds": 0.0},
            "longest_seconds: expected a finite number > 0, got 0.0",
        ),
        (
            "verification-batch/memory-bound",
            {"memory_share": -0.1},
            "memory_share: expected a finite number >= 0, got -0.1",
        ),
        ("serving-latency/equal-inputs", {"tokens": 0}, "tokens: expected an integer >= 1, got 0"),
        (
            "serving-latency/tight-memory",
            {"fit": 0.5},
            "fit: expected a finite number >= 1, got 0.5",
        ),
        (
            "serving-latency/tight-memory",
            {"fit": float("inf")},
            "fit: expected a finite number >= 1, got inf",
        ),
        (
            "serving-latency/stage-ratio",
            {"factor": 0.0},
            "factor: expected a finite number > 0, got 0.0",
        ),
        (
            "serving-latency/slow-link",
            {"loss_decibels": -1.0},
            "loss_decibels: expected a number in \\[0, 200\\], got",
        ),
        (
            "serving-latency/heavy-prefill",
            {"max_input": 7},
            "max_input: expected an integer >= 8, got 7",
        ),
        (
            "serving-latency/known-lengths",
            {"long_share": 2.0},
            "long_share: expected a number in \\[0, 1\\], got 2.0",
        ),
        ("verification-batch/bursty", {"bursts": 0}, "bursts: expected an integer >= 1, got 0"),
        (
            "verification-batch/hopeless-urgent",
            {"hopeless": -1},
            "hopeless: expected an integer >= 0, got -1",
        ),
        (
            "verification-batch/density-trap",
            {"requests": 1},
            "requests: expected an integer >= 2, got 1",
        ),
        (
            "verification-batch/correlated",
            {"time_share": 0.0},
            "time_share: expected a finite number > 0, got 0.0",
        ),
        ("draft-control/near-tie", {"states": 0}, "states: expected an integer >= 1, got 0"),
        (
            "draft-control/deterministic-cycle",
            {"contrast": 0.0},
            "contrast: expected a finite number > 0, got 0.0",
        ),
        (
            "draft-control/slow-mixing",
            {"leave": 1.0},
            r"leave: expected a number in \(0, 1\), got 1.0",
        ),
        (
            "prompt-chunking/slow-message",
            {"message_milliseconds": -1.0},
            "message_milliseconds: expected a finite number",
        ),
        (
            "prompt-chunking/single-stage",
            {"cloud_slowness": 0.0},
            "cloud_slowness: expected a finite number > 0",
        ),
        (
            "prompt-chunking/steep-cloud",
            {"step_tokens": 1},
            "step_tokens: expected an integer >= 2, got 1",
        ),
        (
            "prompt-chunking/slow-link",
            {"slowness": -2.0},
            "slowness: expected a finite number > 0, got -2.0",
        ),
        (
            "draft-allocation/ties",
            {"acceptance": 1.0},
            "acceptance: expected a number in \\[0.001, 0.999\\], got 1.0",
        ),
        (
            "draft-allocation/one-dominates",
            {"distance": 0.0},
            "distance: expected a number in \\[1e-09, 1\\], got 0.0",
        ),
        (
            "draft-allocation/capped",
            {"share": -0.1},
            "share: expected a number in \\[0, 100\\], got -0.1",
        ),
        (
            "fair-goodput/minimum-rates",
            {"tightness": 1.0},
            "tightness: expected a number in \\[0, 0.999\\], got 1.0",
        ),
        (
            "fair-goodput/extreme-fairness",
            {"weight_spread": 0.0},
            "weight_spread: expected a finite number > 0",
        ),
        (
            "prompt-chunking/paper-4",
            {"model": "gpt"},
            "model: expected one of vicuna-7b, vicuna-13b",
        ),
        (
            "prompt-chunking/paper-4",
            {"uplink_megabytes_per_second": 0},
            "uplink_megabytes_per_second: expected a finite number > 0",
        ),
        (
            "prompt-chunking/paper-4",
            {"message_milliseconds": -1},
            "message_milliseconds: expected a finite number >= 0",
        ),
        ("prompt-chunking/paper-4", {"prompt_tokens": 0}, "prompt_tokens"),
        ("prompt-chunking/paper-4", {"pipeline_length": 2.5}, "pipeline_length"),
        (
            "prompt-chunking/random",
            {"prompt_tokens": 2.5},
            "prompt_tokens: expected an integer >= 1",
        ),
        ("prompt-chunking/random", {"knots": 1}, "knots: expected an integer >= 2"),
        ("prompt-chunking/random", {"wait": "maybe"}, "wait"),
        ("prompt-chunking/random", {"max_message_milliseconds": -1.0}, "max_message_milliseconds"),
    ],
)
def test_values_outside_a_domain_are_refused(
    family: str, parameters: dict[str, Any], message: str
) -> None:
    """Tests that the message names the parameter and its domain."""
    with pytest.raises(InvalidInput, match=message):
        ALL[family].generate(**parameters)
