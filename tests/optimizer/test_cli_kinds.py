"""The command line on problems of every kind: generate, solve, evaluate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import CommandLine


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (
            "serving-latency/paper-1 --param tasks=4 --param max_output=50",
            ["optimal", "objective", "inference", "communication", "bound", "gap", "padded input"],
        ),
        (
            "draft-allocation/paper-5 --set max_draft_tokens=[1,1,2,2,3,3,4,4]",
            [
                "draft-allocation by auto (water-level): optimal (converged)",
                "weighted tokens per round",
                "own tokens",
                "accepted draft tokens",
                "every plan has an objective of at most this",
                "draft tokens    1 1 2 2 3 3 4 4",
            ],
        ),
        (
            "draft-control/random --param states=45 --param min_draft=0",
            [
                "draft-control by auto (policy-iteration): optimal",
                "tokens per second",
                "draft length",
                "resolution",
                "... and 5 more states",
            ],
        ),
        (
            "prompt-chunking/paper-4 --param prompt_tokens=351",
            [
                "prompt-chunking by auto (",
                "seconds to the first token",
                "upload",
                "6 of 351 tokens",
                "uuuuuu",
            ],
        ),
        (
            "verification-batch/mixed --param requests=12 --seed 1",
            [
                "verification-batch by auto (threshold): optimal",
                "warm tokens",
                "expected tokens of the batch",
                "batch",
            ],
        ),
        (
            "fair-goodput/paper-5 --param rates=wide",
            ["optimal", "tokens per round", "mean drafts", "schedule"],
        ),
        (
            "fair-goodput/per-second --param rates=wide",
            ["optimal", "tokens per second", "mean drafts", "schedule"],
        ),
    ],
)
def test_from_family_to_verdict(cli: CommandLine, family: str, words: list[str]) -> None:
    """Tests that a problem is made, solved, shown and judged."""
    cli(f"generate {family} -o problem.json")
    shown = cli("solve problem.json -o result.json").out
    for word in words:
        assert word in shown
    assert "feasible" in cli("evaluate problem.json result.json").out


def test_a_state_without_drafts_has_no_resolution(cli: CommandLine) -> None:
    """Tests that the policy of draft control is a table."""
    cli("generate draft-control/alternating --param min_draft=0 -o problem.json")
    lines = cli("solve problem.json").out.splitlines()
    assert [line.split() for line in lines[-2:]] == [
        ["0", "50.00%", "5e+04", "0"],
        ["1", "50.00%", "1e+07", "0.9", "28", "100"],
    ]


def test_long_plans_are_cut(cli: CommandLine) -> None:
    """Tests that a plan of many chunks prints its first ones and says how many more there are."""
    cli("generate prompt-chunking/paper-4 -o problem.json")
    shown = cli("solve problem.json --method fixed --option chunk_tokens=10").out
    assert "... and 50 more chunks" in shown


def test_free_resources_print(cli: CommandLine) -> None:
    """Tests that a prompt that takes no time at all prints, too."""
    cli(
        "generate prompt-chunking/paper-4 --set bytes_per_token=0 --set message_overhead_seconds=0"
        """ --set 'cloud_delay={"tokens": [0, 1], "seconds": [0, 0]}' -o problem.json"""
    )
    assert "optimal" in cli("solve problem.json").out


CHUNKS = "prompt-chunking/paper-4 --param prompt_tokens=20"
ALLOCATION = "draft-allocation/uniform --param clients=2"


@pytest.mark.parametrize(
    ("family", "plan", "code", "text"),
    [
        (
            ALLOCATION,
            {"draft_tokens": [20, 1]},
            1,
            "draft_tokens: the sum is 21, but the budget is 20",
        ),
        (ALLOCATION, {"draft_tokens": [1, 2.0]}, 2, "plan.draft_tokens[1]: expected int, got 2.0"),
        (
            "draft-control/alternating",
            {"policy": [{"draft_length": 99, "resolution": 100}] * 2},
            1,
            "policy[0].draft_length: expected 1 to 32, got 99",
        ),
        (CHUNKS, {"chunks": [8, 8]}, 1, "chunks: the sum is 16, but the prompt has 20 tokens"),
        (CHUNKS, {"chunks": [20, 0]}, 2, "plan.chunks[1]"),
        (
            "verification-batch/tight --param requests=30",
            {"batch": list(range(30))},
            1,
            "is due in",
        ),
        (
            "fair-goodput/paper-5 --param clients=1",
            {
                "goodput": [3.0],
                "mean_draft_tokens": [1.0],
                "schedule": [{"share": 1.0, "draft_tokens": [2]}],
            },
            1,
            "violates",
        ),
    ],
)
def test_wrong_plans(
    cli: CommandLine, family: str, plan: dict[str, Any], code: int, text: str
) -> None:
    """Tests that a plan that violates its problem is exit 1 with the reason, and one that cannot be
    read exit 2.
    """
    cli(f"generate {family} -o problem.json")
    head = {"format": "specopt/1", "kind": family.partition("/")[0]}
    Path("result.json").write_text(json.dumps(head | {"plan": plan}))
    printed = cli("evaluate problem.json result.json", code)
    assert text in printed.out + printed.err


def test_least_rates_that_cannot_be_kept(cli: CommandLine) -> None:
    """Tests that minimum rates set on the command line are refused with the clients' names, exit
    1.
    """
    cli(
        "generate fair-goodput/paper-5 --param clients=4 --set min_goodput=[2,2,9,2]"
        " -o problem.json"
    )
    assert "client 2 needs 9 tokens per round" in cli("solve problem.json", 1).out
