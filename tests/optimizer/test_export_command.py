"""`specopt export`: configurations for engines, plans as CSV and YAML."""

from __future__ import annotations

import csv
import dataclasses
import json
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from helpers.command_line import CommandLine
from oracles.engine_rules import RULES

from specopt import Result, Status, load, save, solve
from specopt.api.generate import generate
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


def test_vllm_table(files: tuple[str, str], tmp_path: Path, cli: CommandLine) -> None:
    """Tests that the table covers all batch sizes, as JSON and as the file to paste, and is shown
    readably.
    """
    command = f"export vllm --runtime {files[0]} --acceptance {files[1]} --max-batch 64"
    target = tmp_path / "config.json"
    found = cli(f"{command} --json -o {target}").json
    ranges = found["num_speculative_tokens_per_batch_size"]
    assert ranges[0][0] == 1
    assert ranges[-1][1] == 64
    assert set(json.loads(target.read_text())) == {
        "num_speculative_tokens",
        "num_speculative_tokens_per_batch_size",
    }
    shown = cli(command).out
    assert "batch size" in shown
    assert '"num_speculative_tokens_per_batch_size"' in shown
    assert "best in the worst case, up to 2 drafts" in cli(f"{command} --robust --max-length 2").out


def test_loads_below_no_speculation_are_named(tmp_path: Path, cli: CommandLine) -> None:
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
    command = f"export vllm --runtime {runtime} --acceptance {rates}"
    data = cli(f"{command} --json").json
    assert data["ranges"][0]["num_speculative_tokens"] == 2
    assert "slower than no speculation at batch sizes 4 to 5 (at least 0." in " ".join(
        data["notes"]
    )


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
def test_every_engine_has_its_configuration(
    files: tuple[str, str], engine: str, tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that the same measurements give each engine a configuration by its own rules, on screen
    and in a file.
    """
    version = "1.3.0rc8" if engine == "tensorrt-llm" else None
    command = f"export {engine} --runtime {files[0]} --acceptance {files[1]} --max-batch 64"
    if version is not None:
        assert (
            "lower bounds on the batch size in versions before 1.3.0rc8 and upper bounds"
            in cli(command, 2).err
        )
        command += f" --engine-version {version}"
    target = tmp_path / "config.json"
    found = cli(f"{command} --json -o {target}").json
    assert found["engine"] == engine
    assert json.loads(target.read_text()) == found["config"]
    RULES[engine](found["config"], version)
    assert json.dumps(found["config"]) in cli(command).out


def test_golden_lengths_by_mode(files: tuple[str, str], tmp_path: Path, cli: CommandLine) -> None:
    """Tests that golden acceptance lengths are taken by mode, and other lengths only by
    extrapolation.
    """
    golden = tmp_path / "al.yaml"
    golden.write_text("model:\n  fast: {1: 1.8, 2: 2.4, 3: 2.3}\n  slow: {1: 1.8, 3: 2.8}\n")
    command = f"export vllm --runtime {files[0]} --acceptance {golden} --max-batch 8 --json"
    cli.refuses(command, "mode of model: expected exactly one, got several (fast, slow)")
    longest = {}
    for options in ("fast", "slow", "slow --extrapolate --max-length 3"):
        found = cli(f"{command} --mode {options}").json
        longest[options] = (found["max_length"], found["config"]["num_speculative_tokens"])
    assert list(longest.values()) == [(3, 2), (1, 1), (3, 3)]


def test_what_does_not_pay_has_no_configuration(
    files: tuple[str, str], tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that where drafting costs more than it gains there is no table of zeros, but the advice
    to leave it out.
    """
    runtime = tmp_path / "slow.json"
    runtime.write_text(json.dumps({"draft": RUNTIME["verify"], "verify": RUNTIME["verify"]}))
    command = f"export vllm --runtime {runtime} --acceptance {files[1]} --max-batch 64"
    found = cli(f"{command} --json").json
    assert found["config"] is None
    assert "num_speculative_tokens_per_batch_size" not in found
    assert (
        "leave speculative_config out: the best draft length, 1, reaches 0." in found["notes"][-1]
    )
    shown = cli(command).out
    assert "leave speculative_config out" in " ".join(shown.split())
    assert "Configuration" not in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--runtime none.json", "none.json: cannot be read"),
        ("--max-batch 0", "max_batch: expected an integer from 1"),
        ("--loss 2", "loss: expected a number in [0, 1)"),
        ("--before none", "expected a Prometheus scrape"),
    ],
)
def test_bad_usage_is_one_message(
    files: tuple[str, str], cli: CommandLine, change: str, message: str
) -> None:
    """Tests that what cannot work exits with 2 and one message."""
    cli.refuses(f"export vllm --runtime {files[0]} --acceptance {files[1]} {change}", message)


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


def test_models_as_configs(files: tuple[str, str], tmp_path: Path, cli: CommandLine) -> None:
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
    command = f"export vllm --runtime {runtime} --acceptance {files[1]} --json"
    cli.refuses(command, "--draft-model CONFIG --verify-model CONFIG")
    options = f"--draft-model {config} --verify-model {config}"
    found = cli(f"{command} {options}").json
    model = cli(f"model {config} --json").json["exact"]["model"]
    runtime.write_text(json.dumps({**per_flop, "draft_model": model, "verify_model": model}))
    assert cli(command).json == found
    cli.refuses(f"{command} {options}", "already contains a draft model; omit this option")


def test_what_is_read_is_not_overwritten(files: tuple[str, str], cli: CommandLine) -> None:
    """Tests that the table does not replace the runtimes or the acceptance that it comes from."""
    command = f"export vllm --runtime {files[0]} --acceptance {files[1]} -o"
    for path in files:
        before = Path(path).read_text()
        cli.refuses(f"{command} {path}", "would overwrite")
        assert Path(path).read_text() == before


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_plans_of_every_kind(kind: str, tmp_path: Path, cli: CommandLine) -> None:
    """Tests that a plan of every kind becomes a table with equal rows, and YAML that says what the
    plan says.
    """
    problem = next(
        iter(import_module(f"small_instances.{kind.replace('-', '_')}").INSTANCES.values())
    )
    path = tmp_path / "result.json"
    save(solve(problem, time_limit=20.0, gap=0.5), path)
    rows = list(csv.DictReader(cli(f"export csv {path}").out.splitlines()))
    assert rows
    cli(f"export yaml {path} -o {tmp_path / 'plan.yaml'}")
    found = yaml.safe_load((tmp_path / "plan.yaml").read_text())
    result = load(path)
    assert isinstance(result, Result)
    assert result.plan is not None
    assert found["plan"] == result.plan.to_dict()
    assert found["objective"] == result.objective
    cli(f"export csv {path} -o {path}", 2)


def test_results_without_a_plan_are_refused(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that there is a message where there is no plan to write."""
    problem = generate("serving-latency/paper-1", tasks=5, seed=1)
    path = tmp_path / "result.json"
    save(dataclasses.replace(solve(problem), plan=None, status=Status.NONE), path)
    cli.refuses(f"export csv {path}", "plan: the result has no plan")


@pytest.mark.parametrize("batches", [[[0, 7]], [[0, 2**64]], [[0, -1]], [[0, 1], [1]], [[0]], []])
def test_plans_that_name_no_task_are_refused(
    batches: list[list[int]], tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that a table needs every task of a plan once: nothing is left out, and no index counts
    from the end.
    """
    problem = generate("serving-latency/paper-1", tasks=2, seed=1)
    path = tmp_path / "result.json"
    data = solve(problem).to_dict()
    path.write_text(json.dumps({**data, "plan": {**data["plan"], "batches": batches}}))
    cli.refuses(f"export csv {path}", "plan.batches: expected each of the 2 tasks")
