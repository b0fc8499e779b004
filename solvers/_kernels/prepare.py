"""Compile one kernel into the cache, in a process that outlives its caller: python -m ... MODULE KERNEL."""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from specopt.solvers._kernels.kernel import folder, prepare

STALE_SECONDS = 120.0
"""A mark older than this is of a process that died."""


def start(dispatcher: Any) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles a kernel, unless one is at it already; return it, or None."""
    mark = _mark(dispatcher)
    try:
        if time.time() - mark.stat().st_mtime < STALE_SECONDS:
            return None
        mark.unlink()
    except FileNotFoundError:
        pass
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return None
    function = dispatcher.py_func
    return subprocess.Popen(
        [sys.executable, "-m", __name__, function.__module__, function.__name__],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def is_running(dispatcher: Any) -> bool:
    """Tell whether a process is at work on a kernel."""
    return _mark(dispatcher).exists()


def _mark(dispatcher: Any) -> Path:
    function = dispatcher.py_func
    root = folder()
    assert root is not None, "the caller has asked"
    return root / f"{function.__module__.rpartition('.')[2]}.{function.__name__}.compiling"


def main(module: str, name: str) -> None:
    """Compile a kernel and remove the mark that says so."""
    dispatcher = getattr(importlib.import_module(module), name)
    try:
        prepare(dispatcher)
    finally:
        with contextlib.suppress(FileNotFoundError):
            _mark(dispatcher).unlink()


if __name__ == "__main__":
    os.nice(1)
    main(*sys.argv[1:])
