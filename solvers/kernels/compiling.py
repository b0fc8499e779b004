"""Which kernels there are, who is informed of their compilation, and the seconds that it takes: all
without Numba.
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
"""Called with the kernel's module when it begins, and with an empty text when it ends; the front
door puts one here.
"""


class _Meter(threading.local):
    seconds = 0.0
    is_running = False
    check: Callable[[], object] = float


meter = _Meter()
"""Seconds that this thread has spent on `metered` code, and what it calls before it compiles a
kernel.
"""


@contextmanager
def checked(check: Callable[[], object]) -> Iterator[None]:
    """Call a function before each kernel that this thread compiles in the enclosed code: it raises
    to prevent it.
    """
    before, meter.check = meter.check, check
    try:
        yield
    finally:
        meter.check = before


@contextmanager
def metered() -> Iterator[None]:
    """Count the seconds of the enclosed code as those of imports and compilation, once where it is
    nested.
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
    """Tell all of them while a kernel of a module is compiled in the enclosed code."""
    for listener in listeners:
        listener(module)
    try:
        yield
    finally:
        for listener in listeners:
            listener("")


def modules_of(kind: str) -> list[str]:
    """Return the modules with kernels of the methods of a kind, by its name as a module; none if it
    has no kernels.
    """
    folder = str(Path(__file__).parents[1] / kind / "kernels")
    names = [module.name for module in pkgutil.iter_modules([folder])]
    return [f"specopt.solvers.{kind}.kernels.{name}" for name in names if name != "simulation"]


def kernels_of(kind: str) -> list[Any]:
    """Return the kernels of the methods of a kind, by its name as a module."""
    modules = [importlib.import_module(name) for name in modules_of(kind)]
    members = [(each, module.__name__) for module in modules for each in vars(module).values()]
    return [
        each
        for each, home in members
        if hasattr(each, "declared") and each.py_func.__module__ == home
    ]


def prepare(name: str) -> str:
    """Compile the kernel MODULE:KERNEL, or read it from the cache, and return its name."""
    module, _, function = name.partition(":")
    kind, _, module = module.partition(".")
    getattr(importlib.import_module(f"specopt.solvers.{kind}.kernels.{module}"), function).prepare()
    return name
