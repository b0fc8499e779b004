"""The limits of a method, and its best plan and bound so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from specopt.models.errors import OutOfMemory, OutOfTime, OutOfWork
from specopt.models.memory import free_memory
from specopt.models.problem import Evaluation, Plan, Problem
from specopt.models.result import Progress
from specopt.solvers.clock import Clock

MEMORY_LIMIT = 2 * 2**30
"""Default memory limit of a solve in bytes, in addition to the memory that the process already
uses.
"""

LAST_SECONDS = 0.025
"""Beyond 1.05 times the limit: half of the delay that a result may have, for the last plan of a
method.
"""

LARGE = 2**26
"""Arrays of at least this many bytes are compared with the memory that is free."""

Callback = Callable[[Progress], bool | None]


def shortage(fields: str, size: float, limit: float) -> str | None:
    """Return a message if arrays over the given fields need more bytes than the limit or the free
    memory, and None otherwise.

    An infinite limit allows everything.
    """
    kind = "but the limit is"
    if LARGE < size <= limit < math.inf:
        limit, kind = free_memory(), "but the free memory is"
    return (
        f"arrays over {fields} need {size:.4g} bytes of memory, {kind} {limit:.4g} bytes"
        if size > limit
        else None
    )


class Budget(Clock):
    """The limits of a method, and its best plan and bound so far.

    Parameters
    ----------
    problem
        The problem that is being solved; its judge rates every offered plan.
    time_limit
        Time limit in seconds, counted from `started`, or None.
    gap
        Relative gap at which a method may stop.
    seed
        Seed of everything random.
    workers
        Cores that an exact search may use.
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
        workers: int = 1,
        memory_limit: float = MEMORY_LIMIT,
        warm_start: Plan | None = None,
        callback: Callback | None = None,
        started: float | None = None,
    ) -> None:
        super().__init__(time_limit, started)
        self.problem = problem
        self.gap = gap
        self.seed = seed
        self.workers = workers
        self.memory_limit = memory_limit
        self.warm_start = warm_start
        self.callback = callback
        self.incumbent: Plan | None = None
        self.objective: float | None = None
        self._evaluation: Evaluation | None = None
        self._judged: tuple[Plan | None, Evaluation | None] = None, None  # the last plan
        self.judging_seconds = self.longest_judging = (
            0.0  # of the last plan, and the longest so far
        )
        self.bound: float | None = None
        self.is_timed = (
            time_limit is not None
        )  # be it infinite: work is limited where there is no limit
        self.work_left = math.inf  # seconds, see `spend`
        # the running one; below, those that found the plan and the bound
        self.member = "warm start"
        self.improvements = 0
        self.plan_by: str | None = None
        self.bound_by: str | None = None

    def check(self, ahead: float = 0.0) -> None:
        """Raise if the clock does, or if the work limit is reached."""
        super().check(ahead)
        if self.work_left <= 0.0:
            raise OutOfWork

    def spend(self, seconds: float) -> None:
        """Charge work to the work limit, in seconds on one core at a fixed rate.

        Because the rate is fixed, the work limit ends at the same node on every machine.
        """
        self.work_left -= seconds

    def is_proven(self, tolerance: float) -> bool:
        """Return whether plan and bound agree within a relative tolerance or the requested gap."""
        if self.objective is None or self.bound is None:
            return False
        return self.problem.gap(self.objective, self.bound) <= max(self.gap, 0.9 * tolerance)

    def hold(self, fields: str, size: float) -> None:
        """Raise if arrays of the given size exceed the memory limit; `fields` determine their size.

        Raises
        ------
        OutOfMemory
            Before anything is allocated.
        """
        lacking = shortage(fields, size, self.memory_limit)
        if lacking is not None:
            raise OutOfMemory(lacking)

    def offer(self, plan: Plan) -> float:
        """Judge a feasible plan, keep it if it is the best so far, report, and return its
        objective.

        Raises
        ------
        OutOfTime
            If there is a plan, and judging another one would outlast what a limit leaves to a
            method that is stopped, by the time of the last one. The best plan at hand is offered
            then.
        """
        if plan is self.incumbent and self.objective is not None:
            return self.objective
        if (
            self.incumbent is not None
            and self.seconds + self.judging_seconds > 1.05 * self.time_limit + LAST_SECONDS
        ):
            raise OutOfTime
        evaluation = self._judge(plan)
        known = self.objective if self._evaluation is None else self._evaluation.key
        if known is None or self._better(evaluation.key, known):
            self.incumbent, self.objective, self._evaluation = (
                plan,
                evaluation.objective,
                evaluation,
            )
            self.plan_by = self.member
            self.improvements += 1
            self.report()
        return evaluation.objective

    def evaluate(self, plan: Plan) -> Evaluation:
        """Return the judge's evaluation of a plan, without asking again about the incumbent or the
        last one.
        """
        for known, evaluation in ((self.incumbent, self._evaluation), self._judged):
            if plan is known and evaluation is not None:
                return evaluation
        return self._judge(plan)

    def _judge(self, plan: Plan) -> Evaluation:
        started = time.perf_counter()
        evaluation = self.problem.evaluate(plan)
        self.judging_seconds = time.perf_counter() - started
        self.longest_judging = max(self.longest_judging, self.judging_seconds)
        self._judged = plan, evaluation
        return evaluation

    def offer_warm_start(self) -> None:
        """Offer the warm start, if there is one."""
        if self.warm_start is not None:
            self.offer(self.warm_start)

    def improve_bound(self, bound: float) -> None:
        """Record a valid bound on the objective of every plan. The best bound is kept."""
        if self.bound is None or self._better(self.bound, bound):
            self.bound, self.bound_by = bound, self.member
            self.report()

    def report(self) -> None:
        """Report the progress to the callback, and record whether it requests a stop."""
        if self.callback is None:
            return
        gap = None
        if self.objective is not None and self.bound is not None:
            gap = self.problem.gap(self.objective, self.bound)
            gap = gap if math.isfinite(gap) else None
        if self.callback(
            Progress(
                self.seconds, self.objective, self.bound, gap, self.incumbent, self.improvements
            )
        ):
            self.stopped = True

    def _better(self, left: float, right: float) -> bool:
        return left < right if self.problem.sense == "minimize" else left > right
