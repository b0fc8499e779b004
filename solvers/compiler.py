"""Compiled kernels, ready within the time of a solve."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from types import ModuleType
from typing import Any

from specopt.models.errors import OutOfTime
from specopt.solvers._kernels.cache import NO_CACHE, folder
from specopt.solvers._kernels.compiling import announced, meter, metered
from specopt.solvers.clock import Clock

POLL_SECONDS = 0.02
"""How often a solve looks whether its kernels are ready."""

COMPILING_SECONDS = 30.0
"""More than a kernel takes to compile, even on a busy machine."""


class Compiler(Clock):
    """A clock that imports and compiles what a method calls, and counts the seconds of that as preparing."""

    def __init__(self, time_limit: float | None = None, started: float | None = None) -> None:
        super().__init__(time_limit, started)
        self._metered_before = meter.seconds
        self.chain: tuple[str, ...] = ()  # what a process compiles after what is missing: the kind's other kernels

    def load(self, module: str) -> Any:
        """Return a module of kernels, each of which is compiled when it is first asked for, within the time limit.

        Raises
        ------
        OutOfTime
            If the module is not imported in time: a process then compiles its kernels for the solves after this one.
            Asking it for a kernel that is not compiled in time does the same.
        """
        from specopt.solvers._kernels import prepare

        try:
            return Kernels(self.load_library(f"specopt.solvers._kernels.{module}"), self)
        except OutOfTime:
            with contextlib.suppress(OSError):  # no place for a cache, or no more processes
                if self.time_limit > 0 and not prepare.was_begun(module):
                    prepare.start(module, *self.chain)
            raise

    def prepare(self, kernel: Any) -> None:
        """Compile a kernel, or read it from the cache, without overrunning the time limit.

        Where little time is left a process of its own compiles: it goes on when the time is up, and the next solve
        finds the kernel in the cache. With more time, where there is no cache, or where the process fails, a thread
        does: an interrupt in the middle of LLVM's calls would crash Python. Nobody does while another process is at it.

        Raises
        ------
        OutOfTime
            If the kernel is not ready in time.
        """
        from specopt.solvers._kernels import kernel as kernels
        from specopt.solvers._kernels import prepare

        self.check()
        if kernels.is_ready(kernel):
            return
        with metered():
            if not kernels.is_cached(kernel):
                with contextlib.suppress(OSError):  # no place for a cache, or no more processes
                    self._wait_for_process(kernel)
                if not kernels.is_cached(kernel):
                    self._wait_for_thread(kernel)
            with prepare.marked(kernels.name_of(kernel)):
                kernels.prepare(kernel)

    def compile_ahead(self, *names: str) -> None:
        """Have a second process compile kernels, given as MODULE:KERNEL, before they are asked for.

        That pays where it takes longer than the second that a process takes to start. Those that are needed last come
        first: what this process needs earlier, and finds nobody at, it compiles itself. Does nothing on one processor.
        """
        from specopt.solvers._kernels import prepare

        asked = [name for name in names if name not in _ahead]
        if not asked or processors() == 1:
            return
        _ahead.update(asked)
        with contextlib.suppress(OSError):  # no place for a cache, or no more processes
            missing = [name for name in asked if not prepare.was_begun(name)]
            if missing:
                prepare.start(*missing)

    @property
    def preparing_seconds(self) -> float:
        """Seconds that this thread has spent on imports and compilation since the clock started."""
        return meter.seconds - self._metered_before

    def outlook(self) -> dict[str, Any]:
        """Return what to say where compilation took the time: that nothing is kept, or how much there is still to do.

        That is which kernels of the kind are missing, and about how long they take.
        """
        from specopt.solvers._kernels import prepare

        if self.remaining > 0.0 or self.preparing_seconds < 0.1 * self.seconds * (self.time_limit > 0.0):
            return {}
        if folder() is None:
            return {"no_cache": NO_CACHE}
        missing, seconds = prepare.outlook(*self.chain)
        return {"kernels_missing": missing, "about_seconds": seconds} if missing else {}

    def _wait_for_process(self, kernel: Any) -> None:
        """Wait for the process that is at work on a kernel, if any; where the time may not suffice, start it."""
        from specopt.solvers._kernels import prepare
        from specopt.solvers._kernels.kernel import is_cached, name_of

        name = name_of(kernel)
        running = prepare.is_running(name)
        if not running and self.remaining > COMPILING_SECONDS:
            return
        if not running:
            prepare.start(name, *self.chain)
        with announced(name.partition(":")[0]):
            while prepare.is_running(name) and not is_cached(kernel):
                time.sleep(min(POLL_SECONDS, self.remaining))
                self.check()

    def _wait_for_thread(self, kernel: Any) -> None:
        from specopt.solvers._kernels.kernel import name_of, prepare
        from specopt.solvers._kernels.prepare import marked

        def work() -> None:
            # an error is repeated, and shown, by the caller
            with contextlib.suppress(Exception), marked(name_of(kernel)):
                prepare(kernel)

        thread = _compilers.get(id(kernel))
        if thread is None or not thread.is_alive():
            thread = _compilers[id(kernel)] = threading.Thread(target=work, daemon=True)
            thread.start()
        while thread.is_alive():
            thread.join(min(POLL_SECONDS, self.remaining))
            self.check()

    def load_library(self, name: str) -> Any:
        """Import a module that takes long to import, without overrunning the time limit.

        Raises
        ------
        OutOfTime
            If the module is not ready in time.
        """
        if name in _ready:
            return _ready[name]
        self.check()
        loader = _loaders.get(name)
        if loader is None:
            loader = _loaders[name] = threading.Thread(target=_load, args=(name,), daemon=True)
            loader.start()
        with metered():
            while loader.is_alive():
                loader.join(min(0.1, self.remaining))
                self.check()
        if name not in _ready:
            _loaders.pop(name, None)
            return importlib.import_module(name)  # it failed in the thread: let the error show here
        return _ready[name]


class Kernels:
    """A module of kernels that are compiled when they are first asked for."""

    def __init__(self, module: ModuleType, compiler: Compiler) -> None:
        self._module = module
        self._compiler = compiler

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if getattr(found, "declared", None) is not None and found._can_compile:
            self._compiler.prepare(found)
        self.__dict__[name] = found  # the next time there is nothing to look up
        return found


_ready: dict[str, ModuleType] = {}
_loaders: dict[str, threading.Thread] = {}
_compilers: dict[int, threading.Thread] = {}
_ahead: set[str] = set()
"""Kernels that were asked for ahead."""


def _load(name: str) -> None:
    try:
        importlib.import_module(name)
    except BaseException:  # repeated, and shown, in the caller's thread
        return
    _ready[name] = sys.modules[name]


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
