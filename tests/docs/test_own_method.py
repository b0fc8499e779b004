"""The example of a plug-in in the documentation, installed; and plug-ins that are broken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from specopt import generate, save

EXAMPLE = Path(__file__).parents[2] / "docs" / "own-method"

IN_PYTHON = """
import sys
from own_method import ShortestFirst
from specopt import compare, generate, solve
from specopt.testing import check_method

problem = generate("verification-batch/quiet", requests=5, seed=3)
assert solve(problem, "shortest-first").plan is not None
(record,) = compare(["shortest-first"], [problem], jobs=1, executor=sys.argv[1])
assert record.status in ("optimal", "feasible"), record.error
assert record.sources["version"] == "own-method 0.1"
check_method(ShortestFirst())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example is installed."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "source").mkdir()
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (folder / "source" / file.name).write_bytes(file.read_bytes())
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "--target", str(folder / "target"), str(folder / "source")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "target"


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where a folder's distributions are installed."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-P", *arguments], capture_output=True, text=True, timeout=180, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_the_example_works_in_python(installed: Path) -> None:
    """Tests that method and family are found by name, in worker processes, and that the method keeps its promises."""
    done = python(installed, "-c", IN_PYTHON, "local")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_example_works_on_a_cluster(installed: Path) -> None:
    """Tests that the workers of a Dask cluster run the method."""
    cluster = """
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        sys.argv[1] = "dask://" + cluster.scheduler_address.removeprefix("tcp://")
"""
    body = IN_PYTHON.replace("check_method(ShortestFirst())\n", "").strip().partition("problem =")
    script = body[0] + cluster.lstrip() + "".join(f"        {line}\n" for line in "".join(body[1:]).splitlines())
    (installed.parent / "cluster.py").write_text(script)
    done = python(installed, str(installed.parent / "cluster.py"), "local")
    assert done.returncode == 0, done.stderr


def test_the_example_works_on_the_command_line(installed: Path) -> None:
    """Tests that `specopt methods` lists it with its distribution, and that the README's other commands succeed."""
    listed = json.loads(python(installed, "-m", "specopt", "methods", "verification-batch", "--json").stdout)
    assert (listed[-1]["name"], listed[-1]["distribution"]) == ("shortest-first", "own-method 0.1")
    assert {entry["distribution"] for entry in listed[:-1]} == {"specopt"}
    recipe = re.search(r"```sh\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
    assert recipe is not None
    commands = [line.partition("#")[0].split()[1:] for line in recipe[1].splitlines() if line.startswith("specopt")]
    assert [command[0] for command in commands] == ["methods", "generate", "solve", "compare"]
    for command in commands:
        small = ["--instances", "1", "--jobs", "1"] if command[0] == "compare" else []
        done = python(installed, "-m", "specopt", *command, *small)
        assert done.returncode == 0, done.stderr
        assert command[0] == "generate" or "shortest-first" in done.stdout


METHOD = """
from dataclasses import dataclass
from typing import ClassVar
from specopt.solvers.verification_batch.fcfs import FirstComeFirstServed

@dataclass(frozen=True)
class Mine(FirstComeFirstServed):
    name: ClassVar[str] = {name!r}

    def run(self, problem, budget):
        {body}
"""

BROKEN = [
    ("mine", "import nowhere_to_be_found", "cannot be loaded (ModuleNotFoundError: No module named"),
    ("mine", "raise SystemExit(3)", "cannot be loaded (SystemExit: 3)"),
    ("mine", "Mine = 3", "expected a subclass of Method with a run of its own, got 3"),
    (
        "mine",
        METHOD.format(name="other", body="pass"),
        "expected an entry point of the name 'verification-batch.other'",
    ),
    ("fcfs", METHOD.format(name="fcfs", body="pass"), "specopt itself has 'fcfs' for verification-batch"),
]


def plug_in(folder: Path, name: str, text: str) -> None:
    """Write a distribution with an entry point."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(text)
    (folder / "mine-1.0.dist-info").mkdir()
    (folder / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    entry = f"[specopt.methods]\nverification-batch.{name} = mine:Mine\n"
    (folder / "mine-1.0.dist-info" / "entry_points.txt").write_text(entry)


def problem_file(folder: Path) -> str:
    """Write a problem, and return its path."""
    save(generate("verification-batch/mixed"), folder / "problem.json")
    return "problem.json"


@pytest.mark.parametrize(("name", "text", "message"), BROKEN)
def test_a_broken_plug_in_is_one_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    """Tests that what cannot be used is named in one line by those who ask for it, and unnoticed by others."""
    plug_in(tmp_path, name, text)
    listed = python(tmp_path, "-m", "specopt", "methods", "verification-batch")
    assert (listed.returncode, listed.stderr.count("\n")) == (0, 1)
    assert f"plug-in verification-batch.{name} (specopt.methods) of mine 1.0: {message}" in listed.stderr
    assert "threshold" in listed.stdout
    problem = problem_file(tmp_path)
    unused = python(tmp_path, "-m", "specopt", "solve", problem, "--method", "edf", "--json")
    assert unused.returncode == 0
    assert "plug-in" not in unused.stderr
    if name == "mine":
        used = python(tmp_path, "-m", "specopt", "solve", problem, "--method", "mine")
        assert (used.returncode, used.stderr.count("\n")) == (2, 1)
        assert message in used.stderr


@pytest.mark.parametrize("body", ["return problem.nothing", "return 3", "raise ZeroDivisionError"])
def test_a_plug_in_that_fails_is_one_line(body: str, tmp_path: Path) -> None:
    """Tests that what a plug-in raises, or returns instead of an outcome, is one line that names it."""
    plug_in(tmp_path, "mine", METHOD.format(name="mine", body=body))
    done = python(tmp_path, "-m", "specopt", "solve", problem_file(tmp_path), "--method", "mine")
    assert done.returncode == 2
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("specopt: plug-in verification-batch.mine (specopt.methods) of mine 1.0: ")
    assert "Traceback" not in done.stderr
