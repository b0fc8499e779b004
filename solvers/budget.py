"""The clock, the incumbent and the caller's wishes while a method runs."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from specopt.models.errors import OutOfMemory, OutOfTime, Stopped
from specopt.models.problem import Evaluation, Plan, Problem
from specopt.models.result import Progress
from specopt.solvers._kernels.compiling import announced

T = TypeVar("T")

SPARE = 0.2
"""Share of the time left in which a long call may still end after it was stopped."""

MEMORY_LIMIT = 2 * 2**30
"""Bytes that a solve may hold by default, on top of what the process holds already."""

LAST_SECONDS = 0.025
"""Beyond 1.05 times the limit: half of what a result may come late, for the last plan of a method."""

POLL_SECONDS = 0.02
"""How often a solve looks whether its kernels are ready."""

COMPILING_SECONDS = 30.0
"""More than a kernel takes to compile, even on a busy machine."""

Callback = Callable[[Progress], bool | None]


class Budget:
    """What a method may spend, and what it has found so far.

    Parameters
    ----------
    problem
        The problem that is being solved; its judge rates every offered plan.
    time_limit
        Seconds from `started` on, or None.
    gap
        Relative gap at which a method may stop.
    seed
        Seed of everything random.
    memory_limit
        Bytes that the method may hold.
    warm_start
        A feasible plan to start from, or None.
    callback
        Called with the progress; returning True stops the method.
    started
        Reading of `time.perf_counter` at which the clock started; now if None.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        time_limit: float | None = None,
        gap: float = 0.0,
        seed: int = 0,
        memory_limit: float = MEMORY_LIMIT,
        warm_start: Plan | None = None,
        callback: Callback | None = None,
        started: float | None = None,
    ) -> None:
        self.problem = problem
        self.time_limit = math.inf if time_limit is None else time_limit
        self.gap = gap
        self.seed = seed
        self.memory_limit = memory_limit
        self.warm_start = warm_start
        self.callback = callback
        self.started = time.perf_counter() if started is None else started
        self.incumbent: Plan | None = None
        self.objective: float | None = None
        self._evaluation: Evaluation | None = None
        self._judged: tuple[Plan | None, Evaluation | None] = None, None  # the last plan
        self._judging_seconds = 0.0
        self.bound: float | None = None
        self.stopped = False
        self.preparing_seconds = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the clock started."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds left; infinite without a limit, never negative."""
        return max(0.0, self.time_limit - self.seconds)

    def check(self, ahead: float = 0.0) -> None:
        """Raise if the caller has asked to stop, or the time is up, or will be within the given seconds."""
        if self.stopped:
            raise Stopped
        if self.seconds + ahead >= self.time_limit:
            raise OutOfTime

    def pace(self) -> Callable[[], None]:
        """Return a check for a loop: called before each round, it begins none that the longest so far overruns."""
        before, longest = self.seconds, 0.0

        def check() -> None:
            nonlocal before, longest
            now = self.seconds
            before, longest = now, max(longest, now - before)
            self.check(longest)

        return check

    def hold(self, fields: str, size: float) -> None:
        """Raise if arrays of that many bytes, whose size some fields set, are more than the memory limit allows.

        Raises
        ------
        OutOfMemory
            Before anything is allocated.
        """
        if size > self.memory_limit:
            raise OutOfMemory(
                f"arrays over {fields} need {size:.4g} bytes of memory, the limit is {self.memory_limit:.4g} bytes"
            )

    def offer(self, plan: Plan) -> float:
        """Judge a feasible plan, keep it if it is the best so far, report, and return its objective.

        Raises
        ------
        OutOfTime
            If there is a plan and judging another one, by the time that the last one took, would outlast what a limit
            leaves to a method that is stopped: the best plan at hand is offered then.
        """
        if plan is self.incumbent and self.objective is not None:
            return self.objective
        if self.incumbent is not None and self.seconds + self._judging_seconds > 1.05 * self.time_limit + LAST_SECONDS:
            raise OutOfTime
        evaluation = self._judge(plan)
        if self.objective is None or self._better(evaluation.objective, self.objective):
            self.incumbent, self.objective, self._evaluation = plan, evaluation.objective, evaluation
            self.report()
        return evaluation.objective

    def evaluate(self, plan: Plan) -> Evaluation:
        """Return what the judge says of a plan, without asking it again about the incumbent or the last one."""
        for known, evaluation in ((self.incumbent, self._evaluation), self._judged):
            if plan is known and evaluation is not None:
                return evaluation
        return self._judge(plan)

    @property
    def judging_seconds(self) -> float:
        """What judging a plan took last."""
        return self._judging_seconds

    def _judge(self, plan: Plan) -> Evaluation:
        started = time.perf_counter()
        evaluation = self.problem.evaluate(plan)
        self._judging_seconds = time.perf_counter() - started
        self._judged = plan, evaluation
        return evaluation

    def improve_bound(self, bound: float) -> None:
        """Record a valid bound on the objective of every plan; the best one counts."""
        if self.bound is None or self._better(self.bound, bound):
            self.bound = bound
            self.report()

    def report(self) -> None:
        """Tell the callback where things stand, and note whether it wants to stop."""
        if self.callback is None:
            return
        gap = None
        if self.objective is not None and self.bound is not None:
            gap = self.problem.gap(self.objective, self.bound)
            gap = gap if math.isfinite(gap) else None
        if self.callback(Progress(self.seconds, self.objective, self.bound, gap)):
            self.stopped = True

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
                    prepare.start(module)
            raise

    def prepare(self, kernel: Any) -> None:
        """Compile a kernel, or read it from the cache, without overrunning the time limit.

        Where little time is left a process of its own compiles: it goes on when the time is up, and the next solve
        finds the kernel in the cache. With more time, where there is no cache, or where the process fails, a thread
        does. Nobody does while another process is at it.

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
        with self._preparing():
            if not kernels.is_cached(kernel):
                with contextlib.suppress(OSError):  # no place for a cache, or no more processes
                    self._wait_for_process(kernel)
                if self.time_limit < math.inf and not kernels.is_cached(kernel):
                    self._wait_for_thread(kernel)
            with prepare.marked(kernels.name_of(kernel)):
                kernels.prepare(kernel)

    @contextlib.contextmanager
    def _preparing(self) -> Iterator[None]:
        """Count the seconds of the enclosed code as preparing, whether or not it comes to an end."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.preparing_seconds += time.perf_counter() - started

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

    def _wait_for_process(self, kernel: Any) -> None:
        """Wait for the process that is at work on a kernel, if any; where the time may not suffice, start it."""
        from specopt.solvers._kernels import prepare
        from specopt.solvers._kernels.kernel import is_cached, name_of

        name = name_of(kernel)
        running = prepare.is_running(name)
        if not running and self.remaining > COMPILING_SECONDS:
            return
        if not running:
            prepare.start(name)
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
        with self._preparing():
            while loader.is_alive():
                loader.join(min(0.1, self.remaining))
                self.check()
        if name not in _ready:
            _loaders.pop(name, None)
            return importlib.import_module(name)  # it failed in the thread: let the error show here
        return _ready[name]

    def call(self, kernel: Callable[..., T], *arguments: Any, partial: bool = False) -> T:
        """Return what a long compiled call gives, without overrunning the time limit.

        The call runs in a thread of its own, so the kernel must release the interpreter's lock (``nogil``); it gets one
        more argument, an array whose entry turns 1 when it should come to an end.

        Parameters
        ----------
        kernel, arguments
            What to call.
        partial
            Whether a stopped call gives something useful: it is then stopped a little before the time is up.

        Raises
        ------
        OutOfTime
            If the call does not end in time, or was stopped and gives nothing useful then.
        """
        self.check()
        spare = SPARE * self.remaining if partial and self.time_limit < math.inf else 0.0
        stop = np.zeros(1, dtype=np.uint8)
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
                        stop[0] = 1
        except BaseException:
            stop[0] = 1
            raise
        if failed:
            raise failed[0]
        return found[0]

    def _better(self, left: float, right: float) -> bool:
        return left < right if self.problem.sense == "minimize" else left > right


class Kernels:
    """A module of kernels that a budget watches while they are compiled."""

    def __init__(self, module: ModuleType, budget: Budget) -> None:
        self._module = module
        self._budget = budget

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if getattr(found, "declared", None) is not None and found._can_compile:
            self._budget.prepare(found)
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
