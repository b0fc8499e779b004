"""The list of kernels, notifications about their compilation, and the time that compilation takes.

Importing this module does not import Numba.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

listeners: list[Callable[[str], object]] = []
"""Functions called with the name of a kernel's module when a compilation starts, and with an empty
string when the compilation ends.
"""


class _Meter(threading.local):
    seconds = 0.0
    is_running = False
    check: Callable[[], object] = float


meter = _Meter()
"""Time that the current thread has spent in `metered` code, in seconds, and the function that the
thread calls before compiling a kernel.
"""


@contextmanager
def checked(check: Callable[[], object]) -> Iterator[None]:
    """Call `check` before each kernel that this thread compiles in the enclosed code.

    `check` can prevent the compilation by raising an exception.
    """
    before, meter.check = meter.check, check
    try:
        yield
    finally:
        meter.check = before


@contextmanager
def metered() -> Iterator[None]:
    """Count the time spent in the enclosed code as import and compilation time.

    Nested uses are counted only once.
    """
    if meter.is_running:
        yield
        return
    meter.is_running, started = True, time.perf_counter()
    try:
        yield
    finally:
        meter.is_running = False
        meter.seconds += time.perf_counter() - started


@contextmanager
def announced(module: str) -> Iterator[None]:
    """Notify all listeners before and after the enclosed code compiles a kernel of a module."""
    for listener in listeners:
        listener(module)
    try:
        yield
    finally:
        for listener in listeners:
            listener("")


def modules_of(kind: str) -> list[str]:
    """Return the names of the modules that contain kernels for a problem kind.

    `kind` is the name of the kind's package. The list is empty if the kind has no kernels. The
    module `simulation` is left out.
    """
    folder = str(Path(__file__).parents[1] / kind / "kernels")
    names = [module.name for module in pkgutil.iter_modules([folder])]
    return [f"specopt.solvers.{kind}.kernels.{name}" for name in names if name != "simulation"]


def kernels_of(kind: str) -> list[Any]:
    """Return the kernels for a problem kind, which is given by the name of its package."""
    modules = [importlib.import_module(name) for name in modules_of(kind)]
    members = [(each, module.__name__) for module in modules for each in vars(module).values()]
    return [
        each
        for each, home in members
        if hasattr(each, "declared") and each.py_func.__module__ == home
    ]


def prepare(name: str) -> str:
    """Compile the kernel named MODULE:KERNEL, or load it from the cache, and return `name`."""
    module, _, function = name.partition(":")
    kind, _, module = module.partition(".")
    getattr(importlib.import_module(f"specopt.solvers.{kind}.kernels.{module}"), function).prepare()
    return name
