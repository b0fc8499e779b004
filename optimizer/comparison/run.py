"""Solve one cell in a process of its own: the function that executors run, here or on another machine."""

from __future__ import annotations

import atexit
import datetime
import platform
import threading
import time

from specopt.comparison.cell import Cell, Record
from specopt.comparison.child import Child, Crashed, Overstayed

GRACE_SECONDS = 5.0
"""Beyond the time limit, before a method that ignores it is killed."""

_local = threading.local()
_children: list[Child] = []
_lock = threading.Lock()


def run_cell(cell: Cell, grace_seconds: float = GRACE_SECONDS) -> Record:
    """Solve a cell in this thread's worker process, and return its record whatever happens.

    The worker stays for the next cell, unless it had to be killed: 1.05 times the time limit and the grace after the
    start. Workers run on one thread each.
    """
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    request = {
        "problem": cell.problem,
        "method": cell.method,
        "options": cell.options,
        "time_limit": cell.time_limit,
        "gap": cell.gap,
        "seed": cell.seed,
    }
    limit = None if cell.time_limit is None else 1.05 * cell.time_limit + grace_seconds
    begun = time.monotonic()
    try:
        found = _child().ask(request, limit)
    except Overstayed:
        found = {"error": f"killed {limit:.4g} s after its start: it ignored its time limit of {cell.time_limit:g} s"}
    except Crashed as crash:
        found = {"error": str(crash)}
    common = {"wall_seconds": time.monotonic() - begun, "started": started, "host": platform.node()}
    if "error" in found:
        return Record.of(cell, status="failed", error=found["error"], **common)
    return Record.of(cell, **found, **common)


def kill_workers() -> None:
    """Kill the worker processes of this process; a thread that waits for one sees it end."""
    with _lock:
        for child in _children:
            if child.process is not None:
                child.kill(child.process)


def close_workers() -> None:
    """Kill the worker processes of this process and forget them; no thread may wait for one any more."""
    kill_workers()
    with _lock:
        children, _children[:] = list(_children), []
    for child in children:
        child.close()


def _child() -> Child:
    child: Child | None = getattr(_local, "child", None)
    if child is None:
        child = _local.child = Child()
    with _lock:
        if child not in _children:
            _children.append(child)
    return child


atexit.register(close_workers)
