"""The example of a plug-in in the documentation, installed; and plug-ins that are broken."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specopt import generate, save

EXAMPLE = Path(__file__).parents[2] / "docs" / "own-method"

SCRIPT = """
import sys
from own_method import ShortestFirst
from specopt import compare, generate, solve
from specopt.testing import check_method


def main(executor):
    problem = generate("verification-batch/quiet", requests=5, seed=3)
    assert solve(problem, "shortest-first").plan is not None
    (record,) = compare(["shortest-first"], [problem], jobs=1, executor=executor)
    assert record.status in ("optimal", "feasible"), record.error
    assert record.sources["version"] == "own-method 0.1"


if __name__ == "__main__":
    if sys.argv[1] == "local":
        main("local")
        check_method(ShortestFirst())
    else:
        from distributed import LocalCluster

        with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
            main("dask://" + cluster.scheduler_address.removeprefix("tcp://"))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example is installed."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "source").mkdir()
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (folder / "source" / file.name).write_bytes(file.read_bytes())
    pip = "pip install -q --no-index --no-deps --no-build-isolation --disable-pip-version-check"
    target, source = str(folder / "target"), str(folder / "source")
    command = [sys.executable, "-m", *pip.split(), "--target", target, source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "target"


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where a folder's distributions are installed."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.nightly
@pytest.mark.parametrize("executor", ["local", "dask"])
def test_the_example_works_in_python(installed: Path, executor: str) -> None:
    """Tests that method and family are found by name, in worker processes and by the workers of a
    Dask cluster, and that the method keeps its promises.
    """
    (installed.parent / "script.py").write_text(SCRIPT)
    done = python(installed, str(installed.parent / "script.py"), executor)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_the_example_works_on_the_command_line(installed: Path) -> None:
    """Tests that `specopt methods` lists it with its distribution, and that the README's other
    commands succeed.
    """
    listed = json.loads(
        python(installed, "-m", "specopt", "methods", "verification-batch", "--json").stdout
    )
    assert (listed[-1]["name"], listed[-1]["distribution"]) == ("shortest-first", "own-method 0.1")
    assert {entry["distribution"] for entry in listed[:-1]} == {"specopt"}
    recipe = re.search(r"```sh\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
    assert recipe is not None
    commands = [
        line.partition("#")[0].split()[1:]
        for line in recipe[1].splitlines()
        if line.startswith("specopt")
    ]
    assert [command[0] for command in commands] == ["methods", "generate", "solve", "compare"]
    for command in commands:
        small = ["--instances", "1", "--jobs", "1"] if command[0] == "compare" else []
        done = python(installed, "-m", "specopt", *command, *small)
        assert done.returncode == 0, done.stderr
        assert command[0] == "generate" or "shortest-first" in done.stdout


METHOD = """
from dataclasses import dataclass
from typing import ClassVar
from specopt.solvers.verification_batch.baselines import FirstComeFirstServed

@dataclass(frozen=True)
class Mine(FirstComeFirstServed):
    name: ClassVar[str] = {name!r}

    def run(self, problem, budget):
        {body}
"""

BROKEN = [
    (
        "mine",
        "import nowhere_to_be_found",
        "cannot be loaded (ModuleNotFoundError: No module named",
    ),
    ("mine", "raise SystemExit(3)", "cannot be loaded (SystemExit: 3)"),
    ("mine", "raise KeyboardInterrupt", "cannot be loaded (KeyboardInterrupt: )"),
    ("mine", "Mine = 3", "expected a subclass of Method with its own run, got 3"),
    (
        "mine",
        METHOD.format(name="other", body="pass"),
        "expected an entry point named 'verification-batch.other'",
    ),
    (
        "fcfs",
        METHOD.format(name="fcfs", body="pass"),
        "specopt already has 'fcfs' for verification-batch",
    ),
]


def plug_in(folder: Path, name: str, text: str) -> None:
    """Write a distribution with an entry point."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(text)
    (folder / "mine-1.0.dist-info").mkdir()
    (folder / "mine-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n"
    )
    entry = f"[specopt.methods]\nverification-batch.{name} = mine:Mine\n"
    (folder / "mine-1.0.dist-info" / "entry_points.txt").write_text(entry)


def problem_file(folder: Path) -> str:
    """Write a problem, and return its path."""
    save(generate("verification-batch/mixed"), folder / "problem.json")
    return "problem.json"


ONE_PROCESS = """
import contextlib, io, json, sys
from specopt.commands import cli
answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run(words)
    answers.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [BROKEN[0], *(pytest.param(*one, marks=pytest.mark.nightly) for one in BROKEN[1:])],
)
def test_a_broken_plug_in_is_one_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    """Tests that what cannot be used is named in one line by those who ask for it, and unnoticed by
    others.
    """
    plug_in(tmp_path, name, text)
    solve = ["solve", problem_file(tmp_path), "--method"]
    commands = [[*solve, "edf", "--json"], ["methods", "verification-batch"], [*solve, name]]
    done = python(tmp_path, "-c", ONE_PROCESS, json.dumps(commands))
    (unused, _, quiet), (listed, out, err), (used, _, line) = json.loads(done.stdout)
    assert (unused, "plug-in" in quiet) == (0, False)
    assert (listed, err.count("\n")) == (0, 1)
    assert f"plug-in verification-batch.{name} (specopt.methods) of mine 1.0: {message}" in err
    assert "threshold" in out
    assert (used, message in line) == ((2, True) if name == "mine" else (0, False))
    assert used == 0 or line.count("\n") == 1


@pytest.mark.parametrize("body", ["return 3", "raise SystemExit"])
def test_a_plug_in_that_fails_is_one_line(body: str, tmp_path: Path) -> None:
    """Tests that what a plug-in raises, or returns instead of an outcome, is one line that names
    it.
    """
    plug_in(tmp_path, "mine", METHOD.format(name="mine", body=body))
    done = python(tmp_path, "-m", "specopt", "solve", problem_file(tmp_path), "--method", "mine")
    assert done.returncode == 2
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith(
        "specopt: plug-in verification-batch.mine (specopt.methods) of mine 1.0: "
    )
    assert "Traceback" not in done.stderr


NOISE = """
import ctypes, os, subprocess, sys
def noise(when):
    print(when, "Python")
    os.write(1, f"{when} raw\\n".encode())
    libc = ctypes.CDLL(None)
    libc.puts(f"{when} C".encode())
    libc.fflush(None)
noise("importing")
"""


@pytest.mark.nightly
def test_what_a_plug_in_prints_is_no_part_of_the_answer(tmp_path: Path) -> None:
    """Tests that a pipe gets the JSON alone and stderr all else; a process that a plug-in leaves
    behind has no pipe.
    """
    child = 'subprocess.Popen(["sleep", "6000"], stderr=-3, close_fds=False).pid'
    body = f'noise("solving"); open("child", "w").write(str({child}))'
    plug_in(
        tmp_path,
        "mine",
        NOISE + METHOD.format(name="mine", body=f"{body}; return super().run(problem, budget)"),
    )
    done = python(tmp_path, "-m", "specopt", "methods", "verification-batch", "--json")
    assert json.loads(done.stdout)[-1]["name"] == "mine"
    assert sorted(done.stderr.splitlines()) == ["importing C", "importing Python", "importing raw"]
    solve = "-m", "specopt", "-q", "solve", problem_file(tmp_path), "--method", "mine"
    for rest in (["--json"], ["-o", "/dev/stdout"]):
        # it is read to its end: the child is alive, and would keep the pipe open
        command = [sys.executable, "-P", *solve, *rest]
        with open(tmp_path / "errors", "w+") as errors:
            out = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=600,
                check=True,
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(tmp_path)},
            ).stdout
            os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
            errors.seek(0)
            printed = set(errors.read().splitlines())
        assert json.loads(out)["method"] == "mine"
        assert {
            f"{when} {how}" for when in ("importing", "solving") for how in ("Python", "raw", "C")
        } <= printed


HANGING = "import sys, time; print('hanging', file=sys.stderr, flush=True); time.sleep(600.0)"


@pytest.mark.nightly
def test_a_plug_in_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Tests that one that does not answer is named where all are listed, once each, and not loaded
    by others.
    """
    plug_in(tmp_path, "mine", HANGING)
    entries = tmp_path / "mine-1.0.dist-info" / "entry_points.txt"
    entries.write_text(entries.read_text() + "verification-batch.other = mine:Other\n")
    listing = (
        "import sys, threading\nfrom specopt.api import plugins; from specopt.commands import cli;"
        " plugins.LOAD_SECONDS = 0.5\nwaits = []; join ="
        " threading.Thread.join\nthreading.Thread.join = lambda self, timeout=None:"
        " (waits.append(timeout), join(self, timeout))[1]\ncode = cli.run(['methods',"
        " 'verification-batch', '--json'])\nassert waits.count(0.5) == 1, waits\nsys.exit(code)"
    )
    done = python(tmp_path, "-c", listing)
    assert done.returncode == 0, done.stderr
    assert "threshold" in [entry["name"] for entry in json.loads(done.stdout)]
    for name in ("mine", "other"):
        assert (
            done.stderr.count(
                f"plug-in verification-batch.{name} (specopt.methods) of mine 1.0: the import did"
                " not end"
            )
            == 1
        )
    for words in (
        ["solve", problem_file(tmp_path), "--json"],
        ["compare", "problem.json", "--method", "edf", "--json"],
    ):
        unused = python(tmp_path, "-m", "specopt", *words)
        assert (unused.returncode, "hanging" in unused.stderr) == (0, False)


def test_ctrl_c_while_a_plug_in_loads(tmp_path: Path) -> None:
    """Tests that a user's interrupt ends a command that waits for a plug-in, by name or for all."""
    plug_in(tmp_path, "mine", HANGING)
    for words in (["methods"], ["solve", problem_file(tmp_path), "--method", "mine"]):
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "specopt", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert child.stderr is not None
        while (line := child.stderr.readline()) != "hanging\n":
            assert line
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=600)
        assert (child.returncode, err) == (130, "specopt: interrupted\n")
