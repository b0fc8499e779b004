"""From measurements to plans, one line each: measure, fit, then generate or import with
`--runtimes`, and solve.
"""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from specopt.commands.cli import run

SHIPPED = files("specopt.instances") / "data" / "measured"
PAIR = ["--draft", "model=draft-15m", "--verify", "model=verify-100m"]
MODELS = [
    f"--{part}-model={SHIPPED / name}.config.json"
    for part, name in (("draft", "draft-15m"), ("verify", "verify-100m"))
]
TOKENS = ["--x", "new_tokens", "--batch", "batch", "--cached", "cached_tokens"]
SMALL = ["--param", "tasks=5", "--param", "max_output=8", "--set", "max_speculation_length=3"]
REQUESTS = "arrival_seconds,input_tokens,output_tokens\n0,40,5\n1,10,8\n2,90,3\n"


def fitted(path: Path, *options: str, table: str = str(SHIPPED / "cpu-pair.csv")) -> str:
    """Fit a pair; return the file."""
    target = path / "runtimes.json"
    assert run(["fit", table, "--y", "seconds_median", *options, "-o", str(target)]) == 0
    return str(target)


def solved(problem: Path) -> dict[str, Any]:
    """Solve a problem file; return the result."""
    result = problem.with_name("result.json")
    assert run(["solve", str(problem), "-o", str(result)]) == 0
    assert run(["evaluate", str(problem), str(result)]) == 0
    data: dict[str, Any] = json.loads(result.read_text())
    assert data["status"] == "optimal"
    return data


@pytest.mark.parametrize("form", ["linear", "roofline"])
def test_a_pair_goes_into_serving_latency(form: str, tmp_path: Path) -> None:
    """Tests that runtimes and models of a fit are those of the problem, generated or imported, and
    `--set` wins.
    """
    runtimes, problem = (
        fitted(tmp_path, *PAIR, *MODELS, *TOKENS, "--form", form),
        tmp_path / "problem.json",
    )
    trace = tmp_path / "trace.csv"
    trace.write_text(REQUESTS)
    fit = json.loads(Path(runtimes).read_text())
    generate = ["generate", "serving-latency/paper-1", *SMALL]
    for command in (generate, ["import", str(trace), "--as", "serving-latency", *SMALL[4:]]):
        assert run([*command, "--runtimes", runtimes, "-o", str(problem)]) == 0
        data = json.loads(problem.read_text())
        for part in ("draft", "verify"):
            assert data[f"{part}_runtime"] == fit[part]["runtime"]
            assert data[part] == fit[part]["model"]
        solved(problem)
    own = '--set=draft_runtime={"seconds_per_flop": 1e-12, "overhead_seconds": 0.5}'
    assert run([*generate, "--runtimes", runtimes, own, "-o", str(problem)]) == 0
    assert json.loads(problem.read_text())["draft_runtime"]["overhead_seconds"] == 0.5


def test_an_estimator_goes_into_verification_batches(tmp_path: Path) -> None:
    """Tests that the additive form of the verify model is the problem's estimator, from a pair and
    by itself.
    """
    problem = tmp_path / "problem.json"
    for options in ((*PAIR, *TOKENS), ("--where", "model=verify-100m", *TOKENS)):
        runtimes = fitted(tmp_path, *options, "--form", "additive")
        fit = json.loads(Path(runtimes).read_text())
        command = [
            "generate",
            "verification-batch/mixed",
            "--param",
            "requests=8",
            "--runtimes",
            runtimes,
        ]
        assert run([*command, "-o", str(problem)]) == 0
        assert json.loads(problem.read_text())["estimator"] == fit.get("verify", fit)["estimator"]
        solved(problem)


def test_runtimes_by_hand(tmp_path: Path) -> None:
    """Tests that runtimes need no fit, and that models beside them are taken."""
    runtime = {"seconds_per_flop": 1e-12, "overhead_seconds": 0.01}
    model = {"layers": 2, "hidden": 64, "ffn": 128}
    path, problem = tmp_path / "own.json", tmp_path / "problem.json"
    path.write_text(json.dumps({"draft": runtime, "verify": runtime, "draft_model": model}))
    assert (
        run(["generate", "serving-latency/paper-1", "--runtimes", str(path), "-o", str(problem)])
        == 0
    )
    data = json.loads(problem.read_text())
    assert (data["draft_runtime"], data["verify_runtime"], data["draft"]) == (
        runtime,
        runtime,
        model,
    )


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
            "draft: expected a runtime, or what fit writes, got None",
        ),
        (
            "serving-latency/paper-1",
            {"draft": {"table": {}}},
            "draft: expected seconds_per_flop, a linear or roofline",
        ),
        (
            "verification-batch/mixed",
            {"verify": {"runtime": {}}},
            "expected an estimator, as fit --form additive",
        ),
        (
            "draft-control/paper-3",
            {},
            "expected a problem of serving-latency, continuous-serving, verification-batch, got"
            " draft-control",
        ),
    ],
)
def test_bad_runtimes_are_one_message(
    family: str, data: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that what a kind cannot take exits with 2 and one message with the file's name."""
    path = tmp_path / "own.json"
    path.write_text(json.dumps(data))
    assert run(["generate", family, "--runtimes", str(path)]) == 2
    captured = capsys.readouterr()
    assert f"{path}" in captured.err
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_what_is_read_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the problem does not replace the runtimes that it comes from."""
    path = tmp_path / "own.json"
    path.write_text("{}")
    assert (
        run(["generate", "serving-latency/paper-1", "--runtimes", str(path), "-o", str(path)]) == 2
    )
    assert "would overwrite what is read" in capsys.readouterr().err


def test_from_measuring_to_solving(tmp_path: Path) -> None:
    """Tests that the four commands follow on each other, for a pair of tiny models measured
    here.
    """
    pytest.importorskip("torch", reason="the extra `measure` is not installed")
    configs = []
    for name, layers in (("small", 1), ("large", 3)):
        (tmp_path / name).mkdir()
        configs.append(str(tmp_path / name / "config.json"))
        shape = {
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 100,
        }
        Path(configs[-1]).write_text(json.dumps(shape))
    table, problem = tmp_path / "table.csv", tmp_path / "problem.json"
    sizes = [
        "--batch",
        "1,2",
        "--new-tokens",
        "1,4,16",
        "--cached-tokens",
        "0,32",
        "--repeats",
        "3",
        "--device",
        "cpu",
    ]
    assert run(["measure", *configs, *sizes, "-o", str(table)]) == 0
    with table.open() as stream:
        names = sorted({row["model"] for row in csv.DictReader(stream)})
    pair = ["--draft", f"model={names[1]}", "--verify", f"model={names[0]}"]
    models = ["--draft-model", configs[0], "--verify-model", configs[1]]
    runtimes = fitted(tmp_path, *pair, *models, *TOKENS, "--form", "linear", table=str(table))
    command = ["generate", "serving-latency/paper-1", *SMALL, "--runtimes", runtimes]
    assert run([*command, "-o", str(problem)]) == 0
    solved(problem)
