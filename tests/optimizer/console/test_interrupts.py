"""Ctrl-C, SIGTERM and SIGHUP at any moment: the exit code of the signal, no traceback, no process
left behind.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.command_line import process

import specopt

CODES = (
    130,
    -signal.SIGINT,
)  # shells say 130 of both; the latter where Python itself has begun to end
COMMANDS = {
    "help": "--help",
    "solve": "solve PROBLEM --method brute-force",
    "simulate": "simulate PROBLEM RESULT --replications 100000",
    "compare": "compare PROBLEM --jobs 2 --time-limit 60 --method brute-force --method exact",
    "keep": (
        "compare PROBLEM --jobs 1 --time-limit 600 --method no-batching --method brute-force --json"
        " -o FOLDER"
    ),
}


FOREVER = """
import sys, time
sys.argv = sys.orig_argv = sys.argv[1:]
from specopt.commands.cli import main
from specopt.solvers.draft_allocation.greedy import Greedy
def run(self, problem, budget, run=Greedy.run):
    run(self, problem, budget)
    print("found", flush=True)
    time.sleep(600.0)
Greedy.run = run
main()
"""
"""The command with a method that prints that it has a plan, and goes on."""


def started(tmp_path: Path, name: str, cold: bool = False) -> subprocess.Popen[str]:
    """Start a command that works longer than any test waits; with an empty cache of kernels if
    asked to.
    """
    problem, result = tmp_path / "problem.json", tmp_path / "result.json"
    if not problem.exists():
        hard = specopt.generate("serving-latency/paper-1", tasks=8, max_output=8000, seed=2)
        specopt.save(hard, problem)
        specopt.save(specopt.solve(hard, time_limit=2.0), result)
    line = COMMANDS[name]
    for word, path in (("PROBLEM", problem), ("RESULT", result), ("FOLDER", tmp_path / "folder")):
        line = line.replace(word, str(path))
    environment = dict(os.environ)
    if cold:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    pipe = subprocess.PIPE
    return process(line, stdout=pipe, env=environment, preexec_fn=restore, start_new_session=True)


def restore() -> None:
    """Let a child take every signal, also where the tests run in the background, or under nohup,
    and ignore some.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def wait_until_loading(child: subprocess.Popen[str]) -> None:
    """Wait until a child has loaded Python itself: what comes before is not ours."""
    maps = Path(f"/proc/{child.pid}/maps")
    while child.poll() is None and "multiarray" not in maps.read_text():
        time.sleep(0.005)


def descendants(pid: int) -> set[int]:
    """Return the processes that a process has started, and those that they have."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for word in task.read_text().split():
            found |= {int(word)} | descendants(int(word))
    return found


def gone(pids: set[int], seconds: float) -> bool:
    """Return whether processes end within some seconds."""
    end = time.monotonic() + seconds
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def check_interrupted(child: subprocess.Popen[str], what: str) -> None:
    """Interrupt a child and check how it ends."""
    done = child.poll() is not None
    below = set() if done else descendants(child.pid)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=600)
    assert "Traceback" not in err and "Exception ignored" not in err, f"{what}: {err}"
    expected = (0, *CODES) if done or "help" in what else CODES
    assert child.returncode in expected, f"{what}: {child.returncode}, {err}"
    assert gone(below, 600.0), what


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_ctrl_c_while_loading(tmp_path: Path) -> None:
    """Tests that an interrupt in the seconds in which the command loads ends it at once."""
    rng = random.Random(1)
    for _ in range(4):
        child = started(tmp_path, "help")
        wait_until_loading(child)
        wait = rng.uniform(0.0, 0.15)
        time.sleep(wait)
        check_interrupted(child, f"help after {wait:.3f} s")


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
@pytest.mark.parametrize("name", ["help", "solve", "simulate", "compare"])
def test_ctrl_c_at_any_moment(name: str, cold: bool, tmp_path: Path) -> None:
    """Tests that an interrupt at a random moment, compilation included, is exit 130 without a
    traceback.
    """
    rng = random.Random(f"{name} {cold}")
    for _ in range(4):
        child = started(tmp_path, name, cold)
        wait_until_loading(child)
        wait = rng.uniform(0.0, rng.choice((0.3, 2.0, 6.0)))
        time.sleep(wait)
        check_interrupted(child, f"{name} after {wait:.3f} s")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_sigterm_ends_workers_too(tmp_path: Path) -> None:
    """Tests that no worker outlives a comparison that is terminated."""
    child = started(tmp_path, "compare")
    end = time.monotonic() + 600.0
    while len(below := descendants(child.pid)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(below) >= 2
    child.terminate()
    child.communicate(timeout=600)
    assert child.returncode == 143
    assert gone(below, 600.0)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_writes_the_best_plan_so_far(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """Tests that a solve that is told to end prints and writes its plan, and that its exit code
    names the signal.
    """
    problem, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    specopt.save(specopt.generate("draft-allocation/uniform", seed=1), problem)
    words = ["specopt", "solve", str(problem), "--method", "greedy", "--json", "-o", str(plan)]
    command, pipe = [sys.executable, "-P", "-c", FOREVER, *words], subprocess.PIPE
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=restore)
    assert child.stderr is not None
    while (line := child.stderr.readline()) != "found\n":
        assert line
    child.send_signal(number)
    out, err = child.communicate(timeout=600)
    assert (child.returncode, "Traceback" in err) == (code, False)
    printed, written = json.loads(out), json.loads(plan.read_text())
    assert printed["plan"] == written["plan"] is not None
    assert printed["termination"] == written["termination"] == "interrupted"


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_a_comparison_that_is_terminated_keeps_what_is_done(tmp_path: Path) -> None:
    """Tests that finished cells are kept and the one at work is no failure, even if its worker gets
    the signal first.

    A batch system sends it to all processes of a job.
    """
    child = started(tmp_path, "keep")
    while not any(
        path.read_text().endswith("\n") for path in (tmp_path / "folder").glob("records-*.jsonl")
    ):
        assert child.poll() is None
        time.sleep(0.02)
    below = descendants(child.pid)
    for pid in below:
        os.kill(pid, signal.SIGTERM)
    time.sleep(0.2)
    child.terminate()
    out, _ = child.communicate(timeout=600)
    assert child.returncode == 143
    assert [(row["method"], row["status"]) for row in json.loads(out)] == [
        ("no-batching", "feasible")
    ]
    assert gone(below, 600.0)


def test_a_process_that_ignores_ctrl_c_goes_on() -> None:
    """Tests that what nohup and shells in the background ask for is kept to."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    child = process("schema draft-control", stdout=subprocess.PIPE, preexec_fn=ignore)
    for _ in range(10):
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGHUP)
    out, err = child.communicate(timeout=600)
    assert (child.returncode, err) == (0, "")
    assert out.startswith("{")


def test_what_an_interrupt_left_half_made_says_nothing() -> None:
    """Tests that objects that cannot end themselves are forgotten, and that any other failure is
    still printed.
    """
    program = (
        "import sys; sys.orig_argv = sys.argv = ['specopt']\n"
        "import specopt.console.interrupts\n"
        "class Half:\n"
        "    def __del__(self): self.never_set\n"
        "class Wrong:\n"
        "    def __del__(self): raise ValueError('wrong')\n"
        "one, two = Half(), Wrong()\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert "never_set" not in done.stderr
    assert "ValueError: wrong" in done.stderr
