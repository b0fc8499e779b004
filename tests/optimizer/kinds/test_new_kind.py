"""One more kind of problem: the four folders of `tests/toy`, and one line of `NAMES`."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
LAYERS = {"optimizer": "", "models": "models", "solvers": "solvers", "instances": "instances"}
COMMANDS: dict[str, list[str]] = {
    "generate": ["generate", "toy/plain", "--param", "most=3", "--seed", "1", "-o", "toy.json"],
    "schema": ["schema", "toy"],
    "methods": ["methods", "toy"],
    "solve": ["solve", "toy.json", "-o", "result.json"],
    "evaluate": ["evaluate", "toy.json", "result.json"],
    "csv": ["export", "csv", "result.json"],
    "compare": ["compare", "toy.json", "toy/plain", "--instances", "2", "--jobs", "1", "--json"],
    "sensitivity": ["sensitivity", "toy.json", "--json"],
    "simulate": ["simulate", "toy.json", "result.json"],
    "robustness": ["evaluate", "toy.json", "result.json", "--acceptance", "0.5:0.6"],
    "import": ["import", "trace.csv", "--as", "toy"],
    "library": ["compare", "toy"],
}
DRIVER = """
import contextlib, io, json, sys
from specopt.commands.cli import run
outcomes = {}
for name, command in json.load(sys.stdin).items():
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(command)
    outcomes[name] = {"code": code, "out": out.getvalue(), "err": err.getvalue()}
json.dump(outcomes, sys.stdout)
"""


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What the commands do in a copy of the package to which the toy kind was added."""
    site = tmp_path_factory.mktemp("site")
    work = tmp_path_factory.mktemp("work")
    for folder, inner in LAYERS.items():
        for source in (ROOT / folder, ROOT / "tests" / "toy" / folder):
            shutil.copytree(
                source,
                site / "specopt" / inner,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
    listed = site / "specopt" / "kinds" / "__init__.py"
    text = listed.read_text()
    entry = '    "draft_control",\n'
    assert text.count(entry) == 1
    listed.write_text(text.replace(entry, f'{entry}    "toy",\n'))
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", DRIVER],
        input=json.dumps(COMMANDS),
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return {name: Outcome(**outcome) for name, outcome in json.loads(done.stdout).items()}


def test_problems_come_from_its_family(outcomes: dict[str, Outcome]) -> None:
    """Tests that a family of the new kind gives a problem, and that the kind has a schema."""
    assert outcomes["generate"].code == 0, outcomes["generate"].err
    assert outcomes["schema"].json["properties"]["kind"]["const"] == "toy"


def test_its_method_solves_it(outcomes: dict[str, Outcome]) -> None:
    """Tests that its method is listed and taken, that its view prints the plan, and that the judge
    reads both files.
    """
    assert "all-of-them" in outcomes["methods"].out
    assert outcomes["solve"].code == 0, outcomes["solve"].err
    assert "toy by all-of-them: optimal" in outcomes["solve"].out
    assert "taken           4 of 4" in outcomes["solve"].out
    assert outcomes["evaluate"].code == 0 and "feasible" in outcomes["evaluate"].out


def test_its_plans_are_tables(outcomes: dict[str, Outcome]) -> None:
    """Tests that a plan of the new kind is exported by its own rows."""
    assert list(csv.DictReader(outcomes["csv"].out.splitlines())) == [
        {"thing": str(i)} for i in range(4)
    ]


def test_it_is_compared(outcomes: dict[str, Outcome]) -> None:
    """Tests that a comparison takes files and families of the new kind, in processes of their
    own.
    """
    records = outcomes["compare"].json
    assert [record["objective"] for record in records] == [8.0, 14.0, 16.0]
    assert {record["status"] for record in records} == {"optimal"}


def test_what_it_declares_is_there_and_what_not_is_refused(outcomes: dict[str, Outcome]) -> None:
    """Tests that its perturbation is worth what it is, and that all that it does not declare is
    refused in a line.
    """
    changes = outcomes["sensitivity"].json["changes"]
    assert [(change["unit"], change["change"]) for change in changes] == [("+1 thing", 2.0)]
    for name, said in (
        ("simulate", "toy has no simulator"),
        (
            "robustness",
            (
                "toy has no acceptance rate or output length that varies; these have:"
                " serving-latency, continuous-serving"
            ),
        ),
        (
            "import",
            (
                "kind: expected one of serving-latency, continuous-serving, verification-batch, got"
                " 'toy'"
            ),
        ),
        ("library", "problems: expected at least one, got none"),
    ):
        outcome = outcomes[name]
        assert outcome.code == 2 and outcome.out == ""
        assert said in outcome.err and len(outcome.err.splitlines()) == 1
