"""Comparisons: every cell once, failures as records, resuming, other executors, bad input."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specopt import InvalidInput, compare, generate
from specopt.commands.cli import run
from specopt.comparison.cell import Cell, pickled
from specopt.comparison.child import Child, Crashed
from specopt.comparison.compare import CompareProgress, cells_of
from specopt.comparison.run import Workers, close_workers, run_cell
from specopt.comparison.sources import sources_of
from specopt.comparison.store import Store
from specopt.comparison.table import Comparison
from specopt.solvers.draft_allocation.water_level import WaterLevel
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.static_batching import StaticBatching

QUICK = ["algorithm-1", "max-batching"]
READY = "import sys; line = sys.stdin.readline(); print('{}', flush=True); "


def small(count: int = 2) -> dict[str, Any]:
    """Return a few small problems of two kinds."""
    found: dict[str, Any] = {f"a/{i}": generate("serving-latency/paper-1", tasks=5, seed=i) for i in range(count)}
    found["b"] = generate("draft-allocation/uniform", seed=1)
    return found


@pytest.fixture
def cell() -> Cell:
    """A cell of a quick method."""
    return cells_of(QUICK[:1], small(1), time_limit=0.2, gap=0.0, seeds=(0,))[0]


@pytest.mark.slow
def test_every_cell_once_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that each method runs on each problem it takes, that records are kept, and nothing is run again."""
    methods: list[str | Method] = [*QUICK, "water-level", StaticBatching(size=2)]
    seen: list[CompareProgress] = []
    first = compare(methods, small(), time_limit=600.0, jobs=2, folder=tmp_path, callback=seen.append)
    assert len(first) == 2 * 3 + 1
    assert {record.status for record in first} <= {"optimal", "feasible"}
    assert {record.label for record in first} == {*QUICK, "water-level", "static-batching size=2"}
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 7, 7)
    with monkeypatch.context() as patch:
        patch.setattr(Child, "command", ("/bin/false",))  # nothing can be run
        again = compare(methods, small(), time_limit=600.0, jobs=2, folder=tmp_path)
    assert [*again] == [*first]
    more = compare(methods, small(3), time_limit=600.0, jobs=1, folder=tmp_path)
    assert len(more) == 10
    assert len(Store(tmp_path).records()) == 10


def test_a_limit_is_one_number_however_it_is_written() -> None:
    """Tests that a comparison of the command line goes on with what Python began: 2 seconds are 2.0."""
    limits = ((2, 0), (2.0, 0.0))
    keys = [cells_of(QUICK, small(1), time_limit=limit, gap=gap, seeds=(0,))[0].key for limit, gap in limits]
    assert keys[0] == keys[1]


def test_shards_share_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that n shards run every cell once, that work is a limit, and that nothing is left to run."""
    command = ["compare", "draft-allocation/uniform", "--instances", "2", "--method", "greedy", "--method", "auto"]
    command += ["--param", "clients=2", "--work", "--jobs", "1", "-o", str(tmp_path)]
    for shard, size in (("1/3", 2), ("2/3", 1), ("3/3", 1), ("9/9", 0)):
        assert run([*command, "--shard", shard, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)) == size
    records = Store(tmp_path).records()
    assert len(records) == 4 and {one.time_limit for one in records.values()} == {None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Child, "command", ("/bin/false",))
        assert run([*command, "--json"]) == 0
    assert [one["parameter_clients"] for one in json.loads(capsys.readouterr().out)] == [2.0] * 4
    for wrong in ("3", "0/2", "3/2"):
        assert run([*command, "--shard", wrong]) == 2
        assert "shard: expected" in capsys.readouterr().err


def test_cells_depend_on_what_matters() -> None:
    """Tests that a cell's identity is problem, method, options and limits, not the instance's name."""
    problem = generate("serving-latency/paper-1", tasks=5, seed=1)

    def key(name: str = "x", method: str = "algorithm-1", **settings: Any) -> str:
        given = {"time_limit": 1.0, "gap": 0.0, "seeds": (0,), **settings}
        return cells_of([method], {name: problem}, **given)[0].key

    assert key() == key("y")
    different = [key(time_limit=2.0), key(gap=0.1), key(seeds=(1,)), key(method="max-batching")]
    assert len({key(), *different}) == 5


def test_a_method_that_overstays_is_killed(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a worker that ignores its time limit is killed, recorded as failed, and the next one starts anew."""
    monkeypatch.setattr(Child, "command", (sys.executable, "-c", READY + "import time; time.sleep(600)"))
    close_workers()
    record = run_in_thread(cell, 0.3)
    assert record.failed
    assert record.error is not None
    assert "ignored its time limit of 0.2 s" in record.error


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os.kill(os.getpid(), 9)", "signal SIGKILL"),
        ("raise SystemExit(3)", "exit code 3"),
        ("raise ValueError('broken')", "exit code 1: ValueError: broken"),
    ],
)
def test_a_crash_is_a_record(cell: Cell, monkeypatch: pytest.MonkeyPatch, code: str, message: str) -> None:
    """Tests that whatever ends a worker is recorded with its reason."""
    monkeypatch.setattr(Child, "command", (sys.executable, "-c", READY + code))
    record = run_in_thread(cell, 600.0)
    assert record.failed
    assert record.error is not None
    assert message in record.error


def test_a_worker_ended_before_it_starts_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a thread that is about to make or start its worker while all are ended waits for no answer."""
    monkeypatch.setattr(Child, "command", (sys.executable, "-c", "import time; time.sleep(600)"))
    workers = Workers()
    child = workers.new()
    workers.kill()
    for late in (child, workers.new()):
        with pytest.raises(Crashed, match="signal SIGKILL"):
            late.ask({}, 60.0)
    workers.close()


def test_a_worker_that_is_at_work_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a thread that waits for its worker sees it end where all are ended."""
    monkeypatch.setattr(Child, "command", (sys.executable, "-c", "import time; time.sleep(600)"))
    workers = Workers()
    child = workers.new()
    with ThreadPoolExecutor(1) as executor, contextlib.closing(workers):
        asked = executor.submit(child.ask, {}, 600.0)
        while child.process is None and not asked.done():
            time.sleep(0.01)
        workers.kill()
        with pytest.raises(Crashed, match="signal SIGKILL"):
            asked.result(timeout=60.0)


def run_in_thread(cell: Cell, grace: float) -> Any:
    """Run a cell in a thread of its own, whose worker process ends with it."""
    with ThreadPoolExecutor(1) as executor:
        record = executor.submit(run_cell, cell, grace).result()
    close_workers()
    return record


def test_a_refusal_is_a_record(cell: Cell) -> None:
    """Tests that a method that cannot take the problem after all fails with its message."""
    other = WaterLevel()
    wrong = replace(cell, pickled=pickled(other, "methods: other"), sources=sources_of(type(other)))
    record = run_in_thread(wrong, 600.0)
    assert record.failed
    assert record.error is not None
    assert "water-level cannot take this problem: it solves draft-allocation" in record.error


@pytest.mark.slow
def test_a_killed_comparison_goes_on(tmp_path: Path) -> None:
    """Tests that after kill -9 finished cells are kept, workers end, and the same command does the rest."""
    command = [sys.executable, "-P", "-m", "specopt", "compare", "serving-latency/paper-1", "--instances", "6"]
    command += [*(f"--method={name}" for name in QUICK), "--jobs", "1", "-o", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 600.0
    while time.monotonic() < deadline and process.poll() is None:
        if (tmp_path / "out").is_dir() and len(Store(tmp_path / "out").records()) >= 2:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = set(Store(tmp_path / "out").records())
    assert len(kept) >= 2
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    records = Store(tmp_path / "out").records()
    assert kept <= set(records)
    assert len(records) == 12


@pytest.mark.nightly
def test_two_writers_share_a_folder(tmp_path: Path) -> None:
    """Tests that two comparisons at once into one folder leave every record whole."""
    command = [sys.executable, "-P", "-m", "specopt", "compare", "serving-latency/paper-1", "--instances", "3"]
    command += [*(f"--method={name}" for name in QUICK), "--jobs", "1", "-o", str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
    assert len(Store(tmp_path).records()) == 6
    for path in tmp_path.glob("records-*.jsonl"):
        for line in path.read_text().splitlines():
            json.loads(line)


def test_damaged_records_are_run_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tests that a damaged line of a folder is reported, and its cell is run."""
    assert len(compare(QUICK[:1], small(1), folder=tmp_path, jobs=1)) == 1
    (path,) = tmp_path.glob("records-*.jsonl")
    path.write_bytes(path.read_bytes()[:-20] + b"\n")
    (record,) = compare(QUICK[:1], small(1), folder=tmp_path, jobs=1)
    assert record.objective is not None
    (message,) = [entry.getMessage() for entry in caplog.records]
    assert message.startswith(f"{path}:1: no record (")


def test_a_folder_that_cannot_be_written_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a folder below a file, and a full disk, are refused with the reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be made"):
        compare(QUICK, small(1), folder=tmp_path / "file" / "out")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    class Here(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(fn(*args, **kwargs))
            monkeypatch.setattr(os, "write", full)
            return future

    with pytest.raises(InvalidInput, match=r"records-.*: cannot be written \(No space left on device\)"):
        compare(QUICK[:1], small(1), folder=tmp_path / "out", executor=Here())
    close_workers()


@pytest.mark.parametrize("loss", [ConnectionError("worker lost"), CancelledError("worker lost")])
def test_what_an_executor_loses_is_a_record(loss: BaseException, tmp_path: Path) -> None:
    """Tests that what the executor itself loses is a failed cell, not the end of the comparison, and is run again."""

    class Losing(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(loss)
            return future

    found = compare(QUICK, small(1), executor=Losing(), folder=tmp_path)
    assert [record.error for record in found] == [f"executor: {type(loss).__name__}: worker lost"] * 2
    assert Store(tmp_path).records() == {}


@pytest.mark.slow
def test_comparisons_in_one_process_leave_each_other_alone() -> None:
    """Tests that the end of a comparison does not kill the workers of another one in the same process."""
    inner: list[Comparison] = []

    def compare_inside(at: CompareProgress) -> None:
        if at.done == 1:
            inner.append(compare(["water-level"], small(1), jobs=1))

    outer = compare(QUICK, small(4), jobs=1, callback=compare_inside)
    assert [record.error for record in [*inner[0], *outer] if record.failed] == []


def test_a_callback_stops() -> None:
    """Tests that a callback that returns True ends the comparison with what there is."""
    assert len(compare(QUICK, small(2), jobs=1, callback=lambda at: at.done >= 1)) == 1


@pytest.mark.nightly
def test_a_dask_cluster_of_processes(tmp_path: Path) -> None:
    """Tests that a cluster's worker processes run the cells, by its own executor and by address."""
    script = """
import sys
from distributed import LocalCluster
from specopt import generate
from specopt.comparison.compare import compare
if __name__ == "__main__":
    problems = [generate("serving-latency/paper-1", tasks=5, seed=i) for i in range(3)]
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        found = compare(["algorithm-1", "max-batching"], problems, executor=f"dask://{address}", folder=sys.argv[1])
    print(len(found), sorted({record.status for record in found}))
"""
    (tmp_path / "run.py").write_text(script)
    command = [sys.executable, "-P", str(tmp_path / "run.py"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("6 ['"), done.stdout
    assert "failed" not in done.stdout
    assert len(Store(tmp_path / "out").records()) == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ["fastest"]}, "methods: expected some of"),
        ({"problems": {}}, "problems: expected at least one"),
        ({"problems": [3]}, r"problems\[0\]: expected a problem, got int"),
        ({"problems": {"three": 3}}, r"problems\[three\]: expected a problem, got int"),
        ({"methods": ["water-level"]}, "methods: expected some of"),
        ({"time_limit": -1.0}, "time_limit: expected a finite number >= 0"),
        ({"gap": -1.0}, "gap: expected a finite number >= 0, got -1.0"),
        ({"gap": float("nan")}, "gap: expected a finite number >= 0, got nan"),
        ({"executor": "dask://nonsense"}, "executor: expected dask://HOST:PORT, got 'dask://nonsense'"),
        ({"seeds": ()}, "seeds: expected at least one"),
        ({"executor": "cluster"}, "executor: expected local, dask://HOST:PORT or ray, got 'cluster'"),
    ],
)
def test_bad_arguments_are_named(settings: dict[str, Any], message: str) -> None:
    """Tests that arguments outside their domain are refused before anything runs."""
    given = {"methods": QUICK, "problems": {"a": generate("serving-latency/paper-1", tasks=5)}, **settings}
    with pytest.raises(InvalidInput, match=message):
        compare(given.pop("methods"), given.pop("problems"), **given)


@pytest.mark.slow
def test_no_cluster_is_one_message() -> None:
    """Tests that an address where no scheduler answers is named."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    with pytest.raises(InvalidInput, match="no Dask scheduler answers at localhost:1"):
        compare(QUICK, small(1), executor="dask://localhost:1")


def test_an_executor_that_takes_no_more_is_one_message() -> None:
    """Tests that a pool that was shut down, or broke, ends the comparison with its reason."""
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(
        InvalidInput, match=r"executor: takes no more cells .*RuntimeError: cannot schedule new futures"
    ):
        compare(QUICK, small(1), executor=executor)
