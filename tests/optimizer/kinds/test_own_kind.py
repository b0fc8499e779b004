"""A kind of problem from a distribution of its own: `tests/toy` as a package, installed beside
specopt.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOY = Path(__file__).parents[2] / "toy"
PROJECT = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "toy-kind"
version = "0.1"
dependencies = ["specopt"]

[project.entry-points."specopt.kinds"]
toy = "toy_kind.kinds.toy:KIND"

[tool.setuptools.packages.find]
include = ["toy_kind*"]
"""

IN_PYTHON = """
from specopt import Status, compare, families, generate, load, methods, save, solve
from specopt import to_arrow, verify
from specopt.testing import NotConformant, check_method, check_solver

save(generate("toy/plain", most=3), "plain.json")
problem = load("plain.json")
assert type(problem).__module__ == "toy_kind.models.toy.problem"
result = solve(problem)
assert (result.status, result.objective) == (Status.OPTIMAL, 6.0)
save(result, "result.json")
assert verify(problem, load("result.json")).matches
assert to_arrow(result).to_pylist() == [{"thing": 0}, {"thing": 1}, {"thing": 2}]
assert [family.name for family in families("toy")] == ["toy/plain"]
(method,) = methods(problem)
assert methods()[-1] is method
(record,) = compare(["all-of-them"], [problem], jobs=1)
assert (record.status, record.objective) == ("optimal", 6.0), record.error
assert record.sources["version"] == "toy-kind 0.1"
check_method(method(), [problem])
best = lambda problem: problem.plan_type(count=problem.limit)
check_solver(best, "toy", exact=True, examples=5, folder=None)
try:
    none = lambda problem: problem.plan_type(count=0)
    check_solver(none, "toy", exact=True, examples=20, folder=None)
    raise SystemExit("a wrong solver passed")
except NotConformant as wrong:
    assert wrong.problem.limit == 1
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the toy kind is installed."""
    folder = tmp_path_factory.mktemp("own")
    for file in TOY.rglob("*.py"):
        place = (
            folder
            / "source"
            / "toy_kind"
            / str(file.relative_to(TOY)).removeprefix(f"optimizer{os.sep}")
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        own = r"specopt\.((models|solvers|instances|kinds)\.toy)"
        place.write_text(re.sub(own, r"toy_kind.\1", file.read_text()))
    (folder / "source" / "pyproject.toml").write_text(PROJECT)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    command += [
        "--disable-pip-version-check",
        "--target",
        str(folder / "target"),
        str(folder / "source"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "target"


def python(
    folder: Path, *arguments: str, beside: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python where a folder's distributions are installed, and perhaps those of another one."""
    path = os.pathsep.join(
        filter(None, [str(folder), str(beside or ""), os.environ.get("PYTHONPATH")])
    )
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )


def command(folder: Path, *words: str) -> str:
    """Run a command of specopt, and return what it prints."""
    done = python(folder, "-m", "specopt", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_works_in_python(installed: Path) -> None:
    """Tests that its problems are generated, saved, loaded, solved, compared and judged, and its
    method checked.
    """
    done = python(installed, "-W", "error", "-c", IN_PYTHON)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_it_works_on_the_command_line(installed: Path) -> None:
    """Tests that files of the kind are read by commands that nobody has told of it, and that its
    view prints plans.
    """
    command(installed, "generate", "toy/plain", "--param", "most=3", "-o", "toy.json")
    listed = json.loads(command(installed, "methods", "toy.json", "--json"))
    assert [(one["name"], one["distribution"]) for one in listed] == [
        ("all-of-them", "toy-kind 0.1")
    ]
    assert "taken           3 of 3" in command(installed, "solve", "toy.json", "-o", "solved.json")
    records = command(
        installed, "compare", "toy.json", "toy/plain", "--instances", "1", "--jobs", "1", "--json"
    )
    assert [record["objective"] for record in json.loads(records)] == [6.0, 14.0]
    command(installed, "report", "solved.json", "--problem", "toy.json", "-o", "toy.html")
    assert "all-of-them" in (installed / "toy.html").read_text()
    assert json.loads(command(installed, "library", "list", "toy", "--json")) == []


BROKEN = [
    ("toy", "import nowhere", "cannot be loaded (ModuleNotFoundError: No module named 'nowhere')"),
    ("toy", "KIND = 1", "expected a Kind with a method, got 1"),
    ("other", "from toy_kind.kinds.toy import KIND", "expected an entry point named 'toy'"),
    (
        "serving-latency",
        "from specopt.kinds import kind_of; KIND = kind_of('serving-latency')",
        "a kind named 'serving-latency' already exists; choose another name",
    ),
]


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [pytest.param(*BROKEN[0], id="import")]
    + [pytest.param(*one, id=one[0], marks=pytest.mark.nightly) for one in BROKEN[1:]],
)
def test_a_broken_one_is_one_line(
    installed: Path, tmp_path: Path, name: str, body: str, said: str
) -> None:
    """Tests that a kind that cannot be used is named where all are listed, and that specopt's own
    work as ever.
    """
    (tmp_path / "mine.py").write_text(body + "\n")
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[specopt.kinds]\n{name} = mine:KIND\n")
    script = (
        "import logging, sys; logging.basicConfig(format='%(message)s'); from specopt import"
        " methods, solve, generate\nfrom specopt.kinds import"
        " kind_of\nsolve(generate('verification-batch/mixed', requests=3)); assert 'mine' not in"
        " sys.modules\nassert len(methods()) == len(methods()) > 20\ntry:\n   "
        " print(kind_of(sys.argv[1]).problem.__module__)\nexcept Exception as error:\n   "
        " print(error)"
    )
    done = python(tmp_path, "-c", script, name, beside=installed if name == "other" else None)
    line = f"plug-in {name} (specopt.kinds) of mine 1.0: {said}"
    assert (done.returncode, done.stderr) == (0, line + "\n")
    assert done.stdout == (
        "specopt.models.serving_latency.problem\n" if name == "serving-latency" else line + "\n"
    )
