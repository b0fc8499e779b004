"""Worker processes: they answer one cell after another, and whatever ends them is recorded."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from specopt import generate
from specopt.comparison import worker
from specopt.comparison.cell import Cell, Record, pickled
from specopt.comparison.compare import cells_of
from specopt.comparison.processes import Crashed, Worker, Workers, run_cell, submitting
from specopt.comparison.sources import sources_of
from specopt.solvers.draft_allocation.water_level import WaterLevel

PROCESS = """
import os, sys, time
from multiprocessing.connection import Connection
pipe = Connection(int(sys.argv[-1]))
while True:
    request = pipe.recv_bytes()
    pipe.send("ready")
"""
"""The beginning of a process that says that it is ready for every request."""
SLEEPING = "import time; time.sleep(600)"
ANSWERING = PROCESS + "    pipe.send({'status': 'none', 'termination': str(os.getpid())})\n"

HIGHS_WITH_TWO_THREADS = """
import highspy
from specopt.comparison.worker import keep_highs_to_one_thread
from specopt.solvers.highs import Highs
keep_highs_to_one_thread()
for threads in (2, 0):
    model = Highs()
    model.setOptionValue("threads", threads)
    model.addVar(0.0, 1.0)
    print(model.run() == highspy.HighsStatus.kOk)
"""


def be(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let workers run some code."""
    monkeypatch.setattr(Worker, "command", (sys.executable, "-c", code))


@pytest.fixture
def cell() -> Cell:
    """A cell of a quick method."""
    problem = generate("serving-latency/paper-1", tasks=5, seed=0)
    return cells_of(["algorithm-1"], [problem], time_limit=0.2, gap=0.0, seeds=(0,))[0]


def run(cell: Cell, grace: float) -> Record:
    """Run a cell in a worker that ends with it."""
    with contextlib.closing(Workers()) as workers:
        return run_cell(cell, grace, workers)


def test_highs_keeps_to_one_thread() -> None:
    """Tests that HiGHS has one thread in a worker: it refuses two, and takes whatever number there
    is.
    """
    command = [sys.executable, "-P", "-c", HIGHS_WITH_TWO_THREADS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_worker_that_ended_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that one process answers request after request, and another one those after its end."""
    be(
        monkeypatch,
        PROCESS + "    pipe.send(os.getpid())\n    if b'last' in request:\n        break\n",
    )
    found = []
    with contextlib.closing(Worker()) as one:
        for request in ("first", "last", "next"):
            found.append(one.ask(request, 600.0))
            assert one.process is not None
            if request == "last":
                one.process.wait(600)
    assert found[0] == found[1] != found[2]


def test_a_method_that_overstays_is_killed(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a worker that ignores its time limit is killed and recorded as failed."""
    be(monkeypatch, PROCESS + "    time.sleep(600)\n")
    record = run(cell, 0.3)
    assert record.failed
    assert (
        record.error
        == "the process was killed 0.51 s after its start: it ignored its time limit of 0.2 s"
    )


def test_a_crash_is_a_record(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that whatever ends a worker is recorded with its reason."""
    for code, message in (
        ("os.kill(os.getpid(), 9)", "signal SIGKILL"),
        ("raise SystemExit(3)", "exit code 3"),
        ("raise ValueError('broken')", "exit code 1: ValueError: broken"),
    ):
        be(monkeypatch, f"{PROCESS}    {code}\n")
        record = run(cell, 600.0)
        assert (record.failed, record.error) == (True, f"the process ended by {message}")


def test_workers_that_are_ended_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that no thread waits for a worker once all are ended, whether it works or is about to
    be started.
    """
    be(monkeypatch, SLEEPING)
    workers = Workers()
    with (
        ThreadPoolExecutor(1) as executor,
        contextlib.closing(workers),
        workers.one() as busy,
        workers.one() as late,
    ):
        asked = executor.submit(busy.ask, "", 600.0)
        while busy.process is None and not asked.done():
            time.sleep(0.01)
        workers.kill()
        with pytest.raises(Crashed, match="signal SIGKILL"):
            asked.result(timeout=60.0)
        with workers.one() as later:
            for one in (late, later):
                with pytest.raises(Crashed, match="signal SIGKILL"):
                    one.ask("", 60.0)


def test_comparisons_in_one_process_leave_each_other_alone(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a worker stays for the next cell, and the end of a comparison kills none of
    another comparison.
    """
    be(monkeypatch, ANSWERING)
    with submitting("local", 1, 600.0) as submit:
        first = submit(cell).result()
        with submitting("local", 1, 600.0) as submit_inside:
            inside = submit_inside(cell).result()
        again = submit(cell).result()
    assert first.termination == again.termination != inside.termination
    assert not any(one.failed for one in (first, inside, again))


def test_a_worker_that_has_loaded_other_sources_is_replaced(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that after an edit of a method its cells go to a process that has not loaded it yet."""
    be(monkeypatch, ANSWERING)
    with contextlib.closing(Workers()) as workers:
        edited = replace(cell, sources={"method": "edited"})
        first, again, other = (
            run_cell(one, 600.0, workers).termination for one in (cell, cell, edited)
        )
    assert first == again != other


def test_a_refusal_is_a_record(cell: Cell) -> None:
    """Tests that a method that cannot take the problem, or differs from what was asked for, fails
    with a message.
    """
    other = WaterLevel()
    wrong = replace(cell, pickled=pickled(other, "methods: other"), sources=sources_of(type(other)))
    refused = worker.answer((wrong, []))["error"]
    assert "water-level cannot solve this problem: it solves draft-allocation" in refused
    edited = worker.answer((replace(cell, sources={"method": "edited"}), []))["error"]
    assert (
        "algorithm-1: the worker's copy differs from the requested one in ['version', 'method'"
        in edited
    )
