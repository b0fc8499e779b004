"""Compile kernels into the cache, in a process that outlives its caller: python -m ... MODULE:KERNEL ...

Whoever is at work on a kernel holds the lock of a file in the cache's folder, which the system frees however it ends;
the file stays. Numba, which takes long to import, is not needed here but by the process that is started.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from specopt.solvers._kernels.cache import folder

_children: list[subprocess.Popen[bytes]] = []  # kept, as Python warns of one that is forgotten while it is at work


def start(*names: str) -> subprocess.Popen[bytes]:
    """Start a process that compiles kernels one after another, but those that another is at, and return it.

    Raises
    ------
    OSError
        If it cannot be started, or there is no folder for what it compiles.
    """
    _folder()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, *names],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    _children.append(child)
    return child


def was_begun(name: str) -> bool:
    """Tell whether a process has begun to compile a kernel, or found it in the cache."""
    return _mark(name).exists()


def kernels_of(prefix: str) -> list[Any]:
    """Return the kernels of all modules and folders here whose names begin so, those of simulations aside."""
    found = []
    for module in pkgutil.walk_packages([str(Path(__file__).parent)], f"{__package__}."):
        name = module.name.removeprefix(f"{__package__}.")
        if name.startswith(prefix) and not name.endswith("simulation"):
            members = vars(importlib.import_module(module.name)).values()
            found += [each for each in members if _is_declared_in(each, module.name)]
    return found


def _is_declared_in(value: Any, module: str) -> bool:
    return getattr(value, "declared", None) is not None and value.py_func.__module__ == module


@contextmanager
def marked(name: str) -> Iterator[None]:
    """Keep other processes from compiling a kernel while the enclosed code does."""
    mark = None
    with suppress(OSError):  # no place for a cache
        mark = _locked(name)
    try:
        yield
    finally:
        if mark is not None:
            mark.close()


def is_running(name: str) -> bool:
    """Tell whether a process is at work on a kernel."""
    mark = _locked(name)
    if mark is None:
        return True
    mark.close()
    return False


def _locked(name: str) -> FileIO | None:
    """Return the file that marks a kernel, locked; None if another process has it."""
    mark = FileIO(_mark(name), "a")
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        mark.close()
        return None
    return mark


def _mark(name: str) -> Path:
    return _folder() / f"{name.replace(':', '.')}.compiling"


def _folder() -> Path:
    found = folder()
    if found is None:
        raise FileNotFoundError("there is no folder for what is compiled")
    return found


def main(*names: str) -> None:
    """Compile kernels, unless another process is at them."""
    from specopt.solvers._kernels.kernel import is_cached, prepare

    for name in names:
        module, _, function = name.partition(":")
        dispatcher = getattr(importlib.import_module(f"{__package__}.{module}"), function)
        mark = _locked(name)
        if mark is not None:
            if not is_cached(dispatcher):
                prepare(dispatcher)
            mark.close()


if __name__ == "__main__":
    os.nice(1)
    main(*sys.argv[1:])
