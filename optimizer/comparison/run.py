"""Solve one cell in a process of its own: the function that executors run, here or on another machine."""

from __future__ import annotations

import atexit
import datetime
import os
import platform
import sys
import threading
import time
from functools import cache
from pathlib import Path

from specopt.comparison.cell import FAILED, Cell, Record
from specopt.comparison.child import Child, Crashed, Overstayed
from specopt.measuring.processor import processor

GRACE_SECONDS = 5.0
"""Beyond the time limit, before a method that ignores it is killed."""

_local = threading.local()


class Workers:
    """The worker processes of some threads, one each."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._ended = False
        self._lock = threading.Lock()

    def adopt_thread(self) -> None:
        """Let the cells of this thread run here; other threads share the workers that `close_workers` ends."""
        _local.workers, _local.child = self, None

    def new(self) -> Child:
        """Return a worker that is not started yet; one that comes after the end is ended, too."""
        child = Child()
        with self._lock:
            child.ended = self._ended
            self._children.append(child)
        return child

    def has(self, child: Child) -> bool:
        """Return whether a worker is one of these, and not closed for good."""
        with self._lock:
            return child in self._children

    def kill(self) -> None:
        """Kill the processes; a thread that waits for one sees it end."""
        with self._lock:
            self._ended = True
            for child in self._children:
                child.ended = True
                if (process := child.process) is not None:
                    child.kill(process)

    def close(self) -> None:
        """Kill the processes and forget them; no thread may wait for one any more."""
        self.kill()
        with self._lock:
            children, self._children = self._children, []
        for child in children:
            child.close()


_shared = Workers()


def run_cell(cell: Cell, grace_seconds: float = GRACE_SECONDS) -> Record:
    """Solve a cell in this thread's worker process, and return its record whatever happens.

    The worker stays for the next cell, unless it had to be killed: 1.05 times the time limit and the grace after the
    start. Workers run on one thread each.
    """
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    request = {
        "problem": cell.problem,
        "method": cell.pickled,
        "sources": cell.sources,
        "path": [str(Path(folder).absolute()) for folder in sys.path],
        "time_limit": cell.time_limit,
        "gap": cell.gap,
        "seed": cell.seed,
    }
    limit = None if cell.time_limit is None else 1.05 * cell.time_limit + grace_seconds
    begun = time.monotonic()
    try:
        child = _child()
        if child.sources.setdefault(cell.pickled, cell.sources) != cell.sources:
            child.close()  # it has loaded what was edited since
            child.sources = {cell.pickled: cell.sources}
        found = child.ask(request, limit)
    except Overstayed:
        found = {"error": f"killed {limit:.4g} s after its start: it ignored its time limit of {cell.time_limit:g} s"}
    except Crashed as crash:
        found = {"error": str(crash)}
    common = {"wall_seconds": time.monotonic() - begun, "started": started}
    common |= {"host": platform.node(), "machine": machine()}
    return Record.of(cell, **{"status": FAILED, **found, **common})


@cache
def machine() -> dict[str, str]:
    """Return what this machine is, for those who read its times."""
    return {
        "processor": processor(),
        "processors": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def close_workers() -> None:
    """End the worker processes of threads that belong to no executor of ours; no such thread may wait for one."""
    global _shared
    _shared.close()
    _shared = Workers()  # what comes later is no part of what has ended


def _child() -> Child:
    workers: Workers = getattr(_local, "workers", _shared)
    child: Child | None = getattr(_local, "child", None)
    if child is None or not workers.has(child):
        child = _local.child = workers.new()
    return child


atexit.register(close_workers)
