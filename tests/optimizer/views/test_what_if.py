"""The commands `simulate` and `sensitivity`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specopt
from specopt.commands.cli import run

Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """A function that runs one command in this process and returns exit code, stdout and stderr."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A problem of four tasks and a result of it."""
    problem = specopt.generate("serving-latency/paper-1", tasks=4, max_output=50, seed=3)
    specopt.save(problem, tmp_path / "problem.json")
    specopt.save(specopt.solve(problem), tmp_path / "result.json")
    return tmp_path / "problem.json", tmp_path / "result.json"


def refused(outcome: tuple[int, str, str], *words: str) -> None:
    """Check a refusal: exit code 2, nothing on stdout, one line on stderr with these words."""
    code, out, err = outcome
    assert (code, out) == (2, "")
    assert err.startswith("specopt: ") and err.count("\n") == 1, err
    assert all(word in err for word in words), err


def test_simulate_prints_a_summary(invoke: Invoke, files: tuple[Path, Path]) -> None:
    """Tests that the mean, its interval, the quantiles and the model's number are shown."""
    code, out, _ = invoke("simulate", *files, "--replications", "50")
    assert code == 0
    for word in (
        "played 50 times",
        "95 % confidence",
        "communication",
        "model",
        "known lengths",
        "quantile",
        "95%",
    ):
        assert word in out
    code, out, _ = invoke("simulate", *files, "--drop-finished")
    assert code == 0
    assert "played 1000 times" in out and "leave at once" in out


def test_simulate_json(invoke: Invoke, files: tuple[Path, Path]) -> None:
    """Tests that --json prints what the library returns, decided by the seed."""
    problem, result = map(specopt.load, files)
    assert isinstance(problem, specopt.Problem) and isinstance(result, specopt.Result)
    code, out, _ = invoke("simulate", *files, "--replications", "60", "--seed", "5", "--json")
    assert code == 0
    expected = specopt.simulate(problem, result, replications=60, seed=5).to_dict()
    assert json.loads(out) | {"seconds": 0} == expected | {"seconds": 0}
    assert json.loads(out)["model"] == result.objective
    other = json.loads(
        invoke("simulate", *files, "--replications", "60", "--seed", "6", "--json")[1]
    )
    assert other["mean"] != expected["mean"]


def test_simulate_refuses(invoke: Invoke, files: tuple[Path, Path], tmp_path: Path) -> None:
    """Tests that other problems' results, results without plan, broken plans and bad numbers exit
    with 2.
    """
    problem, result = files
    other = tmp_path / "other.json"
    specopt.save(specopt.generate("serving-latency/paper-1", tasks=4, seed=9), other)
    refused(invoke("simulate", other, result), "result.json", "another problem")
    refused(invoke("simulate", problem, problem), "expected a result, got a problem")
    refused(invoke("simulate", problem), "RESULT")
    refused(invoke("simulate", *files, "--replications", "1"), "replications", "got 1")
    refused(invoke("simulate", *files, "--replications", "many"), "many")
    data: dict[str, Any] = json.loads(result.read_text())
    empty, broken = tmp_path / "empty.json", tmp_path / "broken.json"
    empty.write_text(json.dumps(data | {"plan": None, "objective": None, "status": "none"}))
    refused(invoke("simulate", problem, empty), "empty.json", "plan")
    broken.write_text(json.dumps(data | {"plan": data["plan"] | {"speculation_length": 99}}))
    refused(invoke("simulate", problem, broken), "speculation_length")


def test_sensitivity_prints_a_table(invoke: Invoke, files: tuple[Path, Path]) -> None:
    """Tests that every resource has its line, and the method and the way are named."""
    code, out, _ = invoke("sensitivity", files[0])
    assert code == 0
    for word in (
        "solved again by auto",
        "+1 MHz bandwidth",
        "+1 GB draft memory",
        "+0.01 acceptance rate",
        "+1 longest speculation",
        "draft passes 1 % faster",
        "verify passes 1 % faster",
        "proven",
        "finite differences",
    ):
        assert word in out


def test_sensitivity_json(invoke: Invoke, files: tuple[Path, Path]) -> None:
    """Tests that --json prints one entry per resource, and that method, options, limit and seed are
    taken.
    """
    code, out, _ = invoke("sensitivity", files[0], "--json")
    assert code == 0
    data = json.loads(out)
    assert data["status"] == "optimal"
    assert len(data["changes"]) == 6
    assert all(
        entry["proven"] and entry["bounds"] == [entry["change"]] * 2 for entry in data["changes"]
    )
    arguments = (
        "--method",
        "static-batching",
        "--option",
        "size=2",
        "--time-limit",
        "30",
        "--seed",
        "1",
        "--json",
    )
    code, out, _ = invoke("sensitivity", files[0], *arguments)
    assert code == 0
    data = json.loads(out)
    assert (data["method"], data["options"]) == ("static-batching", {"size": 2})
    assert not any(entry["proven"] for entry in data["changes"])
    assert "at least" in invoke("sensitivity", files[0], *arguments[:-1])[1]


def test_sensitivity_without_a_plan(invoke: Invoke, tmp_path: Path) -> None:
    """Tests that an infeasible problem exits with 1 and says why."""
    data = specopt.generate("serving-latency/paper-1", tasks=3, max_output=50, seed=3).to_dict()
    path = tmp_path / "hard.json"
    path.write_text(json.dumps(data | {"draft_memory_bytes": 1.5e9}))
    code, out, _ = invoke("sensitivity", path)
    assert code == 1
    assert "draft-model memory" in out
    assert "only with +1 GB draft memory" in out


def test_sensitivity_refuses(invoke: Invoke, files: tuple[Path, Path]) -> None:
    """Tests that bad usage exits with 2 and one message."""
    refused(invoke("sensitivity"), "FILE")
    refused(invoke("sensitivity", files[1]), "expected a problem, got a result")
    refused(invoke("sensitivity", files[0], "--method", "magic"), "magic")
    refused(invoke("sensitivity", files[0], "--time-limit", "-1"), "time_limit", "-1")


def test_sensitivity_interrupted(
    invoke: Invoke, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that after Ctrl-C what was found is printed, and the exit code is 130."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "specopt.solvers.serving_latency.algorithm_1.algorithm_1_batches", interrupt
    )
    code, out, _ = invoke("sensitivity", files[0], "--method", "algorithm-1")
    assert code == 130
    assert "solved again by algorithm-1" in out
