"""From measurements to plans, one line each: measure, fit, then generate or import with
`--runtimes`, and solve.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import CommandLine
from helpers.measured_pair import FIT, MODELS, PAIR, TOKENS

GENERATE = "generate serving-latency/paper-1 --param tasks=5 --param max_output=8"
GENERATE += " --set max_speculation_length=3"
INTO = "--runtimes runtimes.json -o problem.json"


def read(path: str) -> Any:
    """Return what a file holds."""
    return json.loads(Path(path).read_text())


def check_solved(cli: CommandLine) -> None:
    """Check that the problem is solved, and that the judge takes the result."""
    cli("solve problem.json -o result.json")
    cli("evaluate problem.json result.json")
    assert read("result.json")["status"] == "optimal"


@pytest.mark.parametrize("form", ["linear", "roofline"])
def test_a_pair_goes_into_serving_latency(cli: CommandLine, form: str) -> None:
    """Tests that runtimes and models of a fit are those of the problem, generated or imported, and
    `--set` wins.
    """
    cli(f"{FIT} -o runtimes.json {PAIR} {MODELS} {TOKENS} --form {form}")
    Path("trace.csv").write_text(
        "arrival_seconds,input_tokens,output_tokens\n0,40,5\n1,10,8\n2,90,3\n"
    )
    fit = read("runtimes.json")
    for command in (
        GENERATE,
        "import trace.csv --as serving-latency --set max_speculation_length=3",
    ):
        cli(f"{command} {INTO}")
        problem = read("problem.json")
        for part in ("draft", "verify"):
            assert problem[f"{part}_runtime"] == fit[part]["runtime"]
            assert problem[part] == fit[part]["model"]
        check_solved(cli)
    own = """'--set=draft_runtime={"seconds_per_flop": 1e-12, "overhead_seconds": 0.5}'"""
    cli(f"{GENERATE} {own} {INTO}")
    assert read("problem.json")["draft_runtime"]["overhead_seconds"] == 0.5


def test_an_estimator_goes_into_verification_batches(cli: CommandLine) -> None:
    """Tests that the additive form of the verify model is the problem's estimator, from a pair and
    by itself.
    """
    for rows in (PAIR, "--where model=verify-100m"):
        cli(f"{FIT} -o runtimes.json {rows} {TOKENS} --form additive")
        fit = read("runtimes.json")
        cli(f"generate verification-batch/mixed --param requests=8 {INTO}")
        assert read("problem.json")["estimator"] == fit.get("verify", fit)["estimator"]
        check_solved(cli)


def test_runtimes_by_hand(cli: CommandLine) -> None:
    """Tests that runtimes need no fit, and that models beside them are taken."""
    runtime = {"seconds_per_flop": 1e-12, "overhead_seconds": 0.01}
    model = {"layers": 2, "hidden": 64, "ffn": 128}
    own = {"draft": runtime, "verify": runtime, "draft_model": model}
    Path("runtimes.json").write_text(json.dumps(own))
    cli(f"{GENERATE} {INTO}")
    problem = read("problem.json")
    assert problem["draft_runtime"] == problem["verify_runtime"] == runtime
    assert problem["draft"] == model
    cli.refuses(f"{GENERATE} {INTO} -o runtimes.json", "would overwrite the input")


@pytest.mark.parametrize(
    ("family", "data", "message"),
    [
        ("serving-latency/paper-1", [], "expected an object with draft and verify, got []"),
        ("serving-latency/paper-1", {"draft": {}}, "draft: expected seconds_per_flop"),
        (
            "serving-latency/paper-1",
            {"draft": {"pieces": 3}},
            "draft: expected a runtime, got {'pieces': 3}",
        ),
        (
            "serving-latency/paper-1",
            {"verify": {}},
            "draft: expected a runtime or a file written by fit, got None",
        ),
        (
            "serving-latency/paper-1",
            {"draft": {"table": {}}},
            "draft: expected seconds_per_flop, as in a linear or roofline",
        ),
        (
            "verification-batch/mixed",
            {"verify": {"runtime": {}}},
            "expected an estimator as written by fit --form additive",
        ),
        (
            "draft-control/paper-3",
            {},
            "expected a problem of kind serving-latency, continuous-serving, verification-batch,"
            " got draft-control",
        ),
    ],
)
def test_bad_runtimes_are_one_message(
    cli: CommandLine, family: str, data: Any, message: str
) -> None:
    """Tests that what a kind cannot take exits with 2 and one message with the file's name."""
    Path("own.json").write_text(json.dumps(data))
    cli.refuses(f"generate {family} --runtimes own.json", "own.json", message)


def test_from_measuring_to_solving(cli: CommandLine) -> None:
    """Tests that the four commands follow on each other, for a pair of tiny models measured
    here.
    """
    pytest.importorskip("torch", reason="the extra `measure` is not installed")
    for name, layers in (("small", 1), ("large", 3)):
        Path(name).mkdir()
        shape = {
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 100,
        }
        Path(name, "config.json").write_text(json.dumps(shape))
    cli(
        "measure small/config.json large/config.json --batch 1,2 --new-tokens 1,4,16"
        " --cached-tokens 0,32 --repeats 3 --device cpu -o table.csv"
    )
    with open("table.csv") as stream:
        verify, draft = sorted({row["model"] for row in csv.DictReader(stream)})
    cli(
        f"fit table.csv --y seconds_median --draft model={draft} --verify model={verify}"
        " --draft-model small/config.json --verify-model large/config.json"
        f" {TOKENS} --form linear -o runtimes.json"
    )
    cli(f"{GENERATE} {INTO}")
    check_solved(cli)
