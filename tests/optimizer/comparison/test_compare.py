"""Comparisons: every cell once, failures as records, resuming, other executors, bad input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.command_line import CommandLine, process

from specopt import InvalidInput, compare, generate
from specopt.comparison.compare import CompareProgress, cells_of
from specopt.comparison.store import Store
from specopt.models.errors import NotWritten
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.baselines import StaticBatching

QUICK = ["algorithm-1", "max-batching"]


def small(count: int = 2) -> dict[str, Any]:
    """Return a few small problems of two kinds."""
    found: dict[str, Any] = {
        f"a/{i}": generate("serving-latency/paper-1", tasks=5, seed=i) for i in range(count)
    }
    found["b"] = generate("draft-allocation/uniform", seed=1)
    return found


def ended(result: Any) -> Future[Any]:
    """Return a future that has its result."""
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def test_every_cell_once_and_resumed(
    in_this_process: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Tests that each method runs on each problem it takes, is kept, and runs again only where a
    line is damaged.
    """
    methods: list[str | Method] = [*QUICK, "water-level", StaticBatching(size=2)]
    seen: list[CompareProgress] = []
    first = compare(
        methods, small(), time_limit=600.0, jobs=2, folder=tmp_path, callback=seen.append
    )
    assert len(first) == 2 * 3 + 1
    assert {record.status for record in first} <= {"optimal", "feasible"}
    assert {record.label for record in first} == {*QUICK, "water-level", "static-batching size=2"}
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 7, 7)
    in_this_process.clear()
    again = compare(methods, small(), time_limit=600.0, jobs=2, folder=tmp_path)
    assert [*again] == [*first] and not in_this_process
    more = compare(
        methods,
        small(3),
        time_limit=600.0,
        jobs=1,
        folder=tmp_path,
        callback=lambda at: at.done >= 8,
    )
    assert len(more) == len(Store(tmp_path).records()) == 8
    path = next(
        one for one in tmp_path.glob("records-*.jsonl") if len(one.read_bytes().splitlines()) == 1
    )
    path.write_bytes(path.read_bytes()[:-20] + b"\n")
    assert len(compare(methods, small(3), time_limit=600.0, jobs=1, folder=tmp_path)) == 10
    assert len(Store(tmp_path).records()) == 10
    (message,) = [entry.getMessage() for entry in caplog.records]
    assert message.startswith(f"{path}:1: invalid record (")


def test_shards_share_a_folder(
    in_this_process: list[str], cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that n shards run every cell once, that work is a limit, and that nothing is left to
    run.
    """
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # pictures take long
    line = (
        "compare draft-allocation/uniform --instances 2 --method greedy --method auto"
        " --param clients=2 --work --jobs 1 -o out --json"
    )
    for shard, size in (("1/3", 2), ("2/3", 1), ("3/3", 1), ("9/9", 0)):
        assert len(cli(f"{line} --shard {shard}").json) == size
    records = Store("out").records()
    assert len(records) == 4 and {one.time_limit for one in records.values()} == {None}
    in_this_process.clear()
    assert [one["instance"][-12:-2] for one in cli(line).json] == ["clients=2]"] * 4
    assert not in_this_process


def test_cells_depend_on_what_matters() -> None:
    """Tests that problem, method, sources and limits identify a cell, not its name, nor how a
    number is written.

    A comparison of the command line goes on with what Python began: 2 seconds are 2.0.
    """
    problem = generate("serving-latency/paper-1", tasks=5, seed=1)

    def key(name: str = "x", method: str = "algorithm-1", **settings: Any) -> str:
        given = {"time_limit": 1.0, "gap": 0.0, "seeds": (0,), **settings}
        return cells_of([method], {name: problem}, **given)[0].key

    assert key() == key("y") == key(time_limit=1, gap=0)
    different = [key(time_limit=2.0), key(gap=0.1), key(seeds=(1,)), key(method="max-batching")]
    (cell,) = cells_of(["algorithm-1"], [problem], time_limit=1.0, gap=0.0, seeds=(0,))
    different.append(replace(cell, sources=cell.sources | {"method": "edited"}).key)
    assert len({key(), *different}) == 6 and cell.key == key()


@pytest.mark.nightly
def test_a_killed_comparison_goes_on_and_two_writers_share_a_folder(tmp_path: Path) -> None:
    """Tests that finished cells are kept after kill -9, and that two comparisons at once do the
    rest.
    """
    line = f"compare serving-latency/paper-1 --instances 6 --jobs 1 -o {tmp_path}/out"
    line += " --method algorithm-1 --method max-batching"

    def start() -> subprocess.Popen[str]:
        return process(line, stdout=subprocess.PIPE)

    first, deadline = start(), time.monotonic() + 600.0
    while time.monotonic() < deadline and first.poll() is None:
        if (tmp_path / "out").is_dir() and len(Store(tmp_path / "out").records()) >= 2:
            break
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = set(Store(tmp_path / "out").records())
    assert len(kept) >= 2
    for other in [start(), start()]:
        _, err = other.communicate(timeout=600)
        assert other.returncode == 0, err
    store = Store(tmp_path / "out")
    assert kept <= set(store.records()) and len(store.records()) == 12 and not store.damaged


def test_a_folder_that_cannot_be_written_is_one_message(
    in_this_process: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a folder below a file, and a full disk, are refused with the reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be created"):
        compare(QUICK, small(1), folder=tmp_path / "file" / "out")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    class Here(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = ended(fn(*args, **kwargs))
            monkeypatch.setattr(os, "write", full)
            return future

    with pytest.raises(
        NotWritten, match=r"records-.*: cannot be written \(No space left on device\)"
    ):
        compare(QUICK[:1], small(1), folder=tmp_path / "out", executor=Here())
    assert in_this_process == QUICK[:1]


@pytest.mark.parametrize("loss", [ConnectionError("worker lost"), CancelledError("worker lost")])
def test_what_an_executor_loses_is_a_record(loss: BaseException, tmp_path: Path) -> None:
    """Tests that what the executor itself loses is a failed cell, not the end of the comparison,
    and is run again.
    """

    class Losing(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(loss)
            return future

    found = compare(QUICK, small(1), executor=Losing(), folder=tmp_path)
    assert [record.error for record in found] == [
        f"executor: {type(loss).__name__}: worker lost"
    ] * 2
    assert Store(tmp_path).records() == {}


def test_ray_runs_cells(in_this_process: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that every cell is a task of Ray on one processor, and that Ray is ended where it was
    started here.
    """
    calls: list[str] = []

    class Task:
        def __init__(self, function: Any) -> None:
            self.function = function

        def remote(self, *arguments: Any) -> Any:
            return SimpleNamespace(future=lambda: ended(self.function(*arguments)))

    def remote(num_cpus: int) -> type[Task]:
        calls.append(f"{num_cpus} processor")
        return Task

    ray = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **_: calls.append("init"),
        remote=remote,
        shutdown=lambda: calls.append("shutdown"),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert not any(record.failed for record in compare(QUICK, small(1), executor="ray"))
    assert calls == ["init", "1 processor", "shutdown"] and in_this_process == QUICK


@pytest.mark.nightly
def test_no_cluster_is_one_message() -> None:
    """Tests that an address where no scheduler answers is named."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    with pytest.raises(InvalidInput, match="no Dask scheduler answers at localhost:1"):
        compare(QUICK, small(1), executor="dask://localhost:1")


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
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        found = compare(
            ["algorithm-1", "max-batching"],
            problems,
            executor=f"dask://{address}",
            folder=sys.argv[1],
        )
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
        ({"methods": ["fastest"]}, "methods: expected one or more of"),
        ({"problems": {}}, "problems: expected at least one"),
        ({"problems": [3]}, r"problems\[0\]: expected a problem, got int"),
        ({"problems": {"three": 3}}, r"problems\[three\]: expected a problem, got int"),
        ({"methods": ["water-level"]}, "methods: expected one or more of"),
        ({"time_limit": -1.0}, "time_limit: expected a finite number >= 0"),
        ({"gap": -1.0}, "gap: expected a finite number >= 0, got -1.0"),
        ({"gap": float("nan")}, "gap: expected a finite number >= 0, got nan"),
        (
            {"executor": "dask://nonsense"},
            "executor: expected dask://HOST:PORT, got 'dask://nonsense'",
        ),
        ({"seeds": ()}, "seeds: expected at least one"),
        (
            {"executor": "cluster"},
            "executor: expected local, dask://HOST:PORT or ray, got 'cluster'",
        ),
    ],
)
def test_bad_arguments_are_named(settings: dict[str, Any], message: str) -> None:
    """Tests that arguments outside their domain are refused before anything runs."""
    given = {
        "methods": QUICK,
        "problems": {"a": generate("serving-latency/paper-1", tasks=5)},
        **settings,
    }
    with pytest.raises(InvalidInput, match=message):
        compare(given.pop("methods"), given.pop("problems"), **given)


def test_an_executor_that_takes_no_more_is_one_message() -> None:
    """Tests that a pool that was shut down, or broke, ends the comparison with its reason."""
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(
        InvalidInput,
        match=r"executor: no more cells are accepted .*RuntimeError: cannot schedule new futures",
    ):
        compare(QUICK, small(1), executor=executor)
