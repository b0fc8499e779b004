"""One more kind of problem: the four folders of `tests/toy`, and one line of `NAMES`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
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


REFUSED = {
    "simulate": "toy has no simulator",
    "robustness": (
        "toy has no acceptance rate or output length to vary; these kinds have one:"
        " serving-latency, continuous-serving"
    ),
    "import": (
        "kind: expected one of serving-latency, continuous-serving, verification-batch, got 'toy'"
    ),
    "library": "problems: expected at least one problem, got none",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
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
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_commands_take_it(outcomes: dict[str, dict[str, Any]]) -> None:
    """Tests that problems come from its family, its method solves them, its view prints the plan
    and its rows export it, the judge reads both files, and its perturbation has its value.
    """
    done = {name: one for name, one in outcomes.items() if name not in REFUSED}
    assert [(name, one["err"]) for name, one in done.items() if one["code"]] == []
    out = {name: one["out"] for name, one in done.items()}
    assert json.loads(out["schema"])["properties"]["kind"]["const"] == "toy"
    assert "all-of-them" in out["methods"]
    assert (
        "toy by all-of-them: optimal" in out["solve"] and "taken           4 of 4" in out["solve"]
    )
    assert "feasible" in out["evaluate"]
    assert out["csv"].split() == ["thing", "0", "1", "2", "3"]
    records = json.loads(out["compare"])
    assert [record["objective"] for record in records] == [8.0, 14.0, 16.0]
    assert {record["status"] for record in records} == {"optimal"}
    (change,) = json.loads(out["sensitivity"])["changes"]
    assert (change["unit"], change["change"]) == ("+1 thing", 2.0)


def test_what_it_does_not_declare_is_refused(outcomes: dict[str, dict[str, Any]]) -> None:
    """Tests that each command that needs more than it declares is refused with one line."""
    for name, said in REFUSED.items():
        outcome = outcomes[name]
        assert outcome["code"] == 2 and outcome["out"] == ""
        assert said in outcome["err"] and len(outcome["err"].splitlines()) == 1
