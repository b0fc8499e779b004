"""The clock of a solve, which measures the remaining time. It also performs calls and imports that
must not exceed the time limit.
"""

from __future__ import annotations

import importlib
import math
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from specopt.models.errors import OutOfTime, Stopped
from specopt.solvers.kernels.compiling import meter, metered

T = TypeVar("T")

SPARE = 0.2
"""Fraction of the remaining time that is reserved for a kernel to return after a request to stop.
"""


class Clock:
    """The time budget of a solve.

    Parameters
    ----------
    time_limit
        Time limit in seconds, counted from `started`, or None for no time limit.
    started
        Value of `time.perf_counter` at which the clock starts. None stands for the current time.
    """

    def __init__(self, time_limit: float | None = None, started: float | None = None) -> None:
        self.time_limit = math.inf if time_limit is None else time_limit
        self.started = time.perf_counter() if started is None else started
        self.stopped = False
        # Whether the time limit has cut short any part of the solve, even an optional part.
        self.cut_short = False
        self._metered_before = meter.seconds

    @property
    def seconds(self) -> float:
        """Time since the clock started, in seconds."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Remaining time in seconds. It is never negative, and it is infinite if there is no time
        limit.
        """
        return max(0.0, self.time_limit - self.seconds)

    def check(self, ahead: float = 0.0) -> None:
        """Raise an exception if the solve must stop.

        The solve must stop if the caller has requested it, or if the time limit is reached within
        the next `ahead` seconds.
        """
        if self.stopped:
            raise Stopped
        if self.seconds + ahead >= self.time_limit:
            self.cut_short = True
            raise OutOfTime

    def pace(self) -> Callable[[], None]:
        """Return a function that should be called before each iteration of a loop.

        The function raises an exception if an iteration as long as the longest iteration so far
        would exceed the time limit.
        """
        before, longest = self.seconds, 0.0

        def check() -> None:
            nonlocal before, longest
            now = self.seconds
            before, longest = now, max(longest, now - before)
            self.check(longest)

        return check

    def call(self, kernel: Callable[..., T], *arguments: Any, partial: bool = False) -> T:
        """Call a long-running kernel without exceeding the time limit, and return its result.

        The call runs in a separate thread, so the kernel must release the global interpreter lock
        (``nogil``). The kernel receives an additional last argument: an array whose only entry is
        set to 1 when the kernel should stop.

        Parameters
        ----------
        kernel
            Kernel to call.
        arguments
            Positional arguments for the kernel, except the additional argument.
        partial
            Whether a call that is stopped early returns a useful result. If so, the kernel is asked
            to stop shortly before the time limit.

        Raises
        ------
        OutOfTime
            If the call does not return before the time limit.
        """
        self.check()
        # Compile here, because the time of other threads is not counted as preparation.
        if hasattr(kernel, "prepare_for"):
            kernel = kernel.prepare_for(*arguments)
        spare = SPARE * self.remaining if partial and self.time_limit < math.inf else 0.0
        stop = np.zeros(1, np.uint8)
        found: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(kernel(*arguments, stop))
            except BaseException as error:  # raised again in the caller's thread
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(min(0.05, self.remaining))
                if thread.is_alive():
                    self.check()
                    if self.remaining < spare:
                        self.cut_short = True
                        stop[0] = 1
        except BaseException:
            stop[0] = 1
            raise
        if failed:
            raise failed[0]
        return found[0]

    @property
    def preparing_seconds(self) -> float:
        """Time, in seconds, that the current thread has spent on imports and compilation since the
        clock started.
        """
        return meter.seconds - self._metered_before

    def load(self, module: str) -> Any:
        """Import a kernel module, given as "KIND.MODULE", and return it. Its kernels are compiled
        when they are first called.

        Raises
        ------
        OutOfTime
            If the import does not finish before the time limit.
        """
        kind, _, name = module.partition(".")
        return self.load_library(f"specopt.solvers.{kind}.kernels.{name}")

    def load_library(self, name: str) -> Any:
        """Import a module without exceeding the time limit, although the import takes a long time.
        Return the module.

        Raises
        ------
        OutOfTime
            If the import does not finish before the time limit.
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
            # The import failed in the thread; raise its error here.
            return importlib.import_module(name)
        return _ready[name]


_ready: dict[str, ModuleType] = {}
_loaders: dict[str, threading.Thread] = {}


def _load(name: str) -> None:
    try:
        _ready[name] = importlib.import_module(name)
    except BaseException:  # the caller's thread repeats the import and raises the error
        return
