"""The command `simulate` for draft control."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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


def refused(outcome: tuple[int, str, str], *words: str) -> None:
    """Check a refusal: exit code 2, nothing on stdout, one line on stderr with these words."""
    code, out, err = outcome
    assert (code, out) == (2, "")
    assert err.startswith("specopt: ") and err.count("\n") == 1, err
    assert all(word in err for word in words), err


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A problem file and a result file of it."""
    folder = tmp_path_factory.mktemp("draft-control")
    problem = specopt.generate("draft-control/paper-3")
    specopt.save(problem, folder / "problem.json")
    specopt.save(specopt.solve(problem), folder / "result.json")
    return folder / "problem.json", folder / "result.json"


def test_summary(invoke: Invoke, files: tuple[Path, Path]) -> None:
    """Tests that rate, interval, judge and responses are printed."""
    code, out, _ = invoke("simulate", *files, "--replications", "50", "--response-tokens", "64")
    assert code == 0
    for word in (
        "policy-iteration",
        "95 % confidence",
        "mean / model",
        "responses of 64 tokens",
        "50%",
    ):
        assert word in out


def test_json(invoke: Invoke, files: tuple[Path, Path]) -> None:
    """Tests that the JSON is that of the Python call."""
    code, out, _ = invoke(
        "simulate", *files, "--replications", "20", "--iterations", "30", "--seed", "5", "--json"
    )
    assert code == 0
    data = json.loads(out)
    problem, result = (specopt.load(path) for path in files)
    assert isinstance(problem, specopt.Problem) and isinstance(result, specopt.Result)
    expected = specopt.simulate(problem, result, replications=20, iterations=30, seed=5).to_dict()
    assert {**data, "seconds": 0} == {**expected, "seconds": 0}
    assert data["model"] == result.objective


def test_refusals(invoke: Invoke, files: tuple[Path, Path], tmp_path: Path) -> None:
    """Tests that options of the other kind, and kinds without a simulator, end with exit code 2 and
    one line.
    """
    refused(invoke("simulate", *files, "--drop-finished"), "drop_finished", "draft-control")
    refused(invoke("simulate", *files, "--iterations", "0"), "iterations", "got 0")
    refused(invoke("simulate", *files, "--response-tokens", "many"), "many")
    for family, option in (
        ("serving-latency/paper-1", "--iterations"),
        ("draft-allocation/uniform", "--seed"),
    ):
        problem = specopt.generate(
            family, **({"tasks": 3, "max_output": 30} if "serving" in family else {})
        )
        specopt.save(problem, tmp_path / "problem.json")
        specopt.save(specopt.solve(problem, time_limit=2.0), tmp_path / "result.json")
        word = "iterations" if option == "--iterations" else "draft-allocation has no simulator"
        refused(
            invoke("simulate", tmp_path / "problem.json", tmp_path / "result.json", option, "3"),
            word,
        )
