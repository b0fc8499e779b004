"""Compile one kernel into the cache, in a process that outlives its caller: python -m ... MODULE KERNEL.

While it is at work it holds the lock of a file in the cache's folder. The system frees the lock however it ends.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import subprocess
import sys
from io import FileIO
from pathlib import Path
from typing import Any

from specopt.solvers._kernels.kernel import folder, module_of, prepare

_children: list[subprocess.Popen[bytes]] = []  # kept, as Python warns of one that is forgotten while it is at work


def start(dispatcher: Any) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles a kernel and return it; None if one is at it already.

    Raises
    ------
    OSError
        If it cannot be started, or there is no folder for what it compiles.
    """
    if is_running(dispatcher):
        return None
    function = dispatcher.py_func
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, function.__module__, function.__name__],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    _children.append(child)
    return child


def is_running(dispatcher: Any) -> bool:
    """Tell whether a process is at work on a kernel."""
    mark = _locked(dispatcher)
    if mark is None:
        return True
    mark.close()
    return False


def _locked(dispatcher: Any) -> FileIO | None:
    """Return the file that marks a kernel, locked; None if another process has it."""
    root = folder()
    if root is None:
        raise FileNotFoundError("there is no folder for what is compiled")
    mark = FileIO(Path(root, f"{module_of(dispatcher)}.{dispatcher.py_func.__name__}.compiling"), "a")
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        mark.close()
        return None
    return mark


def main(module: str, name: str) -> None:
    """Compile a kernel, unless another process is at it."""
    dispatcher = getattr(importlib.import_module(module), name)
    mark = _locked(dispatcher)
    if mark is not None:
        prepare(dispatcher)
        mark.close()


if __name__ == "__main__":
    os.nice(1)
    main(*sys.argv[1:])
