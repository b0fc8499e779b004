"""Utilities for compiling kernels. They list all kernels, notify listeners when a compilation
starts or ends, and measure the time spent compiling.

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
"""Functions that are called when a compilation starts or ends. The argument is the name of the
kernel's module at the start, and an empty string at the end.
"""


class _Meter(threading.local):
    seconds = 0.0
    is_running = False
    check: Callable[[], object] = float


meter = _Meter()
"""State of the current thread: the time in seconds that it has spent in `metered` code, and the
function that it calls before compiling a kernel.
"""


@contextmanager
def checked(check: Callable[[], object]) -> Iterator[None]:
    """Call `check` before each kernel that the current thread compiles inside the `with` block.

    `check` can prevent the compilation by raising an exception.
    """
    before, meter.check = meter.check, check
    try:
        yield
    finally:
        meter.check = before


@contextmanager
def metered() -> Iterator[None]:
    """Count the time spent inside the `with` block as import and compilation time.

    The time spent in nested blocks is counted only once.
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
    """Notify all listeners before and after the `with` block, in which a kernel of `module` is
    compiled.
    """
    for listener in listeners:
        listener(module)
    try:
        yield
    finally:
        for listener in listeners:
            listener("")


def modules_of(kind: str) -> list[str]:
    """Return the names of the modules that contain kernels for a problem kind.

    `kind` is the name of the kind's package, such as "serving_latency". The list is empty if the
    kind has no kernels. Modules named `simulation` are excluded.
    """
    folder = str(Path(__file__).parents[1] / kind / "kernels")
    names = [module.name for module in pkgutil.iter_modules([folder])]
    return [f"specopt.solvers.{kind}.kernels.{name}" for name in names if name != "simulation"]


def kernels_of(kind: str) -> list[Any]:
    """Return the kernels for a problem kind. `kind` is the name of the kind's package, such as
    "serving_latency".
    """
    return [
        each
        for name in modules_of(kind)
        for each in vars(importlib.import_module(name)).values()
        if hasattr(each, "declared") and each.py_func.__module__ == name
    ]


def prepare(name: str) -> str:
    """Compile the kernel whose name has the form MODULE:KERNEL, or load it from the cache. Return
    `name`.
    """
    for each in kernels_of(name.partition(".")[0]):
        if each.name == name:
            each.prepare()
    return name
