"""`specopt export`: configurations for engines, plans as CSV and YAML."""

from __future__ import annotations

import csv
import dataclasses
import json
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from oracles.engine_rules import RULES

from specopt import Result, Status, load, save, solve
from specopt.api.generate import generate
from specopt.commands.cli import run
from specopt.kinds import KINDS

RUNTIME = {
    "draft": {"seconds_per_token": 2e-5, "overhead_seconds": 0.002},
    "verify": {"seconds_per_token": 2e-4, "overhead_seconds": 0.03},
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Runtimes and an acceptance histogram."""
    runtime = tmp_path / "runtime.json"
    acceptance = tmp_path / "acceptance.json"
    runtime.write_text(json.dumps(RUNTIME))
    acceptance.write_text(
        json.dumps({"acceptance_histogram": [100, 80, 60, 160], "num_draft_tokens": 1200})
    )
    return str(runtime), str(acceptance)


def test_vllm_table(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the table covers all batch sizes, as JSON and as the file to paste, and is shown
    readably.
    """
    command = [
        "export",
        "vllm",
        "--runtime",
        files[0],
        "--acceptance",
        files[1],
        "--max-batch",
        "64",
    ]
    target = tmp_path / "config.json"
    assert run([*command, "--json", "-o", str(target)]) == 0
    found = json.loads(capsys.readouterr().out)
    ranges = found["num_speculative_tokens_per_batch_size"]
    assert ranges[0][0] == 1
    assert ranges[-1][1] == 64
    assert set(json.loads(target.read_text())) == {
        "num_speculative_tokens",
        "num_speculative_tokens_per_batch_size",
    }
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert "batch size" in shown
    assert '"num_speculative_tokens_per_batch_size"' in shown
    assert run([*command, "--robust", "--max-length", "2"]) == 0
    assert "best in the worst case, up to 2 drafts" in capsys.readouterr().out


def test_loads_below_no_speculation_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that every batch size is flagged at which an engine with the table is slower than one
    without speculation, whatever the mean of its range.
    """
    runtime = tmp_path / "runtime.json"
    rates = tmp_path / "rates.json"
    grid = {"batch": [], "new_tokens": [], "seconds": []}  # type: dict[str, list[float]]
    for batch in (1, 2, 3, 4, 5):
        for new, jump in ((1, 0.0), (2, 0.5), (3, 0.5)):
            grid["batch"].append(batch)
            grid["new_tokens"].append(new)
            grid["seconds"].append(0.02 + (jump * 0.02 * (4.0 if batch >= 4 else 1.0)))
    table = {"table": grid}
    runtime.write_text(
        json.dumps({"drafter": {"type": "ngram"}, "verify": table, "zero_draft_cost": 0.2})
    )
    rates.write_text('{"acceptance_rates": [0.8, 0.7]}')
    command = ["export", "vllm", "--runtime", str(runtime), "--acceptance", str(rates)]
    assert run([*command, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ranges"][0]["num_speculative_tokens"] == 2
    assert "below no speculation at batch sizes 4 to 5 (at least 0." in " ".join(data["notes"])


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
def test_every_engine_has_its_configuration(
    files: tuple[str, str], engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the same measurements give each engine a configuration by its own rules, on screen
    and in a file.
    """
    version = "1.3.0rc8" if engine == "tensorrt-llm" else None
    command = [
        "export",
        engine,
        "--runtime",
        files[0],
        "--acceptance",
        files[1],
        "--max-batch",
        "64",
    ]
    if version is not None:
        assert run(command) == 2
        assert (
            "lower bounds of the batch size before 1.3.0rc8 and upper bounds since"
            in capsys.readouterr().err
        )
        command += ["--engine-version", version]
    target = tmp_path / "config.json"
    assert run([*command, "--json", "-o", str(target)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] == engine
    assert json.loads(target.read_text()) == found["config"]
    RULES[engine](found["config"], version)
    assert run(command) == 0
    assert json.dumps(found["config"]) in capsys.readouterr().out


def test_golden_lengths_by_mode(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that golden acceptance lengths are taken by mode, and other lengths only by
    extrapolation.
    """
    golden = tmp_path / "al.yaml"
    golden.write_text("model:\n  fast: {1: 1.8, 2: 2.4, 3: 2.3}\n  slow: {1: 1.8, 3: 2.8}\n")
    command = [
        "export",
        "vllm",
        "--runtime",
        files[0],
        "--acceptance",
        str(golden),
        "--max-batch",
        "8",
        "--json",
    ]
    assert run(command) == 2
    assert "mode of model: expected one, got fast, slow" in capsys.readouterr().err
    longest = {}
    for options in (("fast",), ("slow",), ("slow", "--extrapolate", "--max-length", "3")):
        assert run([*command, "--mode", *options]) == 0
        found = json.loads(capsys.readouterr().out)
        longest[options] = (found["max_length"], found["config"]["num_speculative_tokens"])
    assert list(longest.values()) == [(3, 2), (1, 1), (3, 3)]


def test_what_does_not_pay_has_no_configuration(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that where drafting costs more than it gains there is no table of zeros, but the advice
    to leave it out.
    """
    runtime = tmp_path / "slow.json"
    runtime.write_text(json.dumps({"draft": RUNTIME["verify"], "verify": RUNTIME["verify"]}))
    command = [
        "export",
        "vllm",
        "--runtime",
        str(runtime),
        "--acceptance",
        files[1],
        "--max-batch",
        "64",
    ]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["config"] is None
    assert "num_speculative_tokens_per_batch_size" not in found
    assert (
        "leave speculative_config out: the best draft length, 1, reaches 0." in found["notes"][-1]
    )
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert "leave speculative_config out" in " ".join(shown.split())
    assert "Configuration" not in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--runtime", "none.json"], "none.json: cannot be read"),
        (["--max-batch", "0"], "max_batch: expected an integer from 1"),
        (["--loss", "2"], "loss: expected a number in [0, 1)"),
        (["--before", "none"], "expected a Prometheus scrape"),
    ],
)
def test_bad_usage_is_one_message(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    """Tests that what cannot work exits with 2 and one message."""
    assert run(["export", "vllm", "--runtime", files[0], "--acceptance", files[1], *change]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-6,
}


def test_models_as_configs(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that configs count the operations as the same models in the file do, and are not taken
    beside those.
    """
    config = tmp_path / "config.json"
    runtime = tmp_path / "per-flop.json"
    config.write_text(json.dumps(CONFIG))
    per_flop = {
        "draft": {"seconds_per_flop": 1e-11, "overhead_seconds": 1e-4},
        "verify": {"seconds_per_flop": 1e-9, "overhead_seconds": 1e-2},
    }
    runtime.write_text(json.dumps(per_flop))
    command = ["export", "vllm", "--runtime", str(runtime), "--acceptance", files[1], "--json"]
    assert run(command) == 2
    assert "--draft-model CONFIG --verify-model CONFIG" in capsys.readouterr().err
    options = ["--draft-model", str(config), "--verify-model", str(config)]
    assert run([*command, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert run(["model", str(config), "--json"]) == 0
    model = json.loads(capsys.readouterr().out)["exact"]["model"]
    runtime.write_text(json.dumps({**per_flop, "draft_model": model, "verify_model": model}))
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert run([*command, *options]) == 2
    assert "--draft-model: expected a file without a draft model" in capsys.readouterr().err


def test_what_is_read_is_not_overwritten(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the table does not replace the runtimes or the acceptance that it comes from."""
    command = ["export", "vllm", "--runtime", files[0], "--acceptance", files[1], "-o"]
    for path in files:
        before = Path(path).read_text()
        assert run([*command, path]) == 2
        assert "would overwrite" in capsys.readouterr().err
        assert Path(path).read_text() == before


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_plans_of_every_kind(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a plan of every kind becomes a table with equal rows, and YAML that says what the
    plan says.
    """
    problem = next(
        iter(import_module(f"small_instances.{kind.replace('-', '_')}").INSTANCES.values())
    )
    path = tmp_path / "result.json"
    save(solve(problem, time_limit=20.0, gap=0.5), path)
    assert run(["export", "csv", str(path)]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert rows
    assert run(["export", "yaml", str(path), "-o", str(tmp_path / "plan.yaml")]) == 0
    found = yaml.safe_load((tmp_path / "plan.yaml").read_text())
    result = load(path)
    assert isinstance(result, Result)
    assert result.plan is not None
    assert found["plan"] == result.plan.to_dict()
    assert found["objective"] == result.objective
    assert run(["export", "csv", str(path), "-o", str(path)]) == 2


def test_results_without_a_plan_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that there is a message where there is no plan to write."""
    problem = generate("serving-latency/paper-1", tasks=5, seed=1)
    path = tmp_path / "result.json"
    save(dataclasses.replace(solve(problem), plan=None, status=Status.NONE), path)
    assert run(["export", "csv", str(path)]) == 2
    assert "plan: the result has no plan" in capsys.readouterr().err


@pytest.mark.parametrize("batches", [[[0, 7]], [[0, 2**64]], [[0, -1]], [[0, 1], [1]], [[0]], []])
def test_plans_that_name_no_task_are_refused(
    batches: list[list[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a table needs every task of a plan once: nothing is left out, and no index counts
    from the end.
    """
    problem = generate("serving-latency/paper-1", tasks=2, seed=1)
    path = tmp_path / "result.json"
    data = solve(problem).to_dict()
    path.write_text(json.dumps({**data, "plan": {**data["plan"], "batches": batches}}))
    assert run(["export", "csv", str(path)]) == 2
    assert "plan.batches: expected each of the 2 tasks" in capsys.readouterr().err
