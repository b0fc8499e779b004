"""The budget of a solve: the limits of a method, with the best plan and the best bound so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from specopt.models.errors import OutOfMemory, OutOfTime, OutOfWork
from specopt.models.memory import free_memory
from specopt.models.problem import ROUNDING, Evaluation, Plan, Problem
from specopt.models.result import Progress
from specopt.solvers.clock import Clock

MEMORY_LIMIT = 2 * 2**30
"""Default memory limit of a solve in bytes, in addition to the memory that the process already
uses.
"""

LAST_SECONDS = 0.025
"""Time allowed for judging a method's last plan beyond 1.05 times the time limit, in seconds.

This time is half of the delay that a result may have.
"""

LARGE = 2**26
"""Minimum size, in bytes, of arrays that are compared with the free memory."""

Callback = Callable[[Progress], bool | None]


def shortage(fields: str, size: float, limit: float) -> str | None:
    """Return an error message if arrays whose size depends on the given fields exceed the available
    memory.

    The arrays are compared with the limit and, if they are large, with the free memory. The result
    is None if the arrays fit or the limit is infinite.
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
    """The limits of a method, with the best plan and the best bound so far.

    Parameters
    ----------
    problem
        Problem to solve; its judge evaluates every offered plan.
    time_limit
        Time limit in seconds, counted from `started`, or None.
    gap
        Relative gap at which a method may stop.
    seed
        Seed of all random numbers.
    workers
        Number of cores that an exact search may use.
    memory_limit
        Maximum memory that the method may use, in bytes.
    warm_start
        Feasible initial plan, or None.
    callback
        Function that is called with the progress; if it returns True, the method stops.
    started
        Value of `time.perf_counter` at which the clock starts; None means the current time.
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
            0.0  # for the last plan, and the maximum so far
        )
        self.bound: float | None = None
        # An infinite time limit counts as a time limit. Without a time limit, the work is limited.
        self.is_timed = time_limit is not None
        self.work_left = math.inf  # seconds, see `spend`
        # `member` is running; the members `plan_by` and `bound_by` found the plan and the bound.
        self.member = "warm start"
        self.improvements = 0
        self.plan_by: str | None = None
        self.bound_by: str | None = None

    def check(self, ahead: float = 0.0) -> None:
        """Raise an exception if the solve must stop or if the work limit is reached."""
        super().check(ahead)
        if self.work_left <= 0.0:
            raise OutOfWork

    def spend(self, seconds: float) -> None:
        """Charge work to the work limit, in seconds on one core at a fixed rate.

        Because the rate is fixed, a method reaches its work limit at the same node on all machines.
        """
        self.work_left -= seconds

    def is_proven(self, tolerance: float) -> bool:
        """Return whether the plan and the bound agree within a relative tolerance or the requested
        gap.
        """
        if self.objective is None or self.bound is None:
            return False
        return self.problem.gap(self.objective, self.bound) <= max(self.gap, 0.9 * tolerance)

    def hold(self, fields: str, size: float) -> None:
        """Check that arrays fit into memory before they are allocated.

        `size` is the total size of the arrays in bytes, and `fields` names the fields of the
        problem that determine this size.

        Raises
        ------
        OutOfMemory
            If the arrays exceed the memory limit or the free memory.
        """
        lacking = shortage(fields, size, self.memory_limit)
        if lacking is not None:
            raise OutOfMemory(lacking)

    def offer(self, plan: Plan) -> float:
        """Judge a feasible plan, keep and report it if it is the best so far, and return its
        objective.

        Raises
        ------
        OutOfTime
            If a plan is already known, and judging another plan would exceed the time limit and its
            tolerance. Judging is expected to take as long as for the last plan.
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
        if (
            known is None
            or self._better(evaluation.key, known)
            or (
                self._evaluation is not None
                and evaluation.tie_break < self._evaluation.tie_break
                and math.isclose(evaluation.key, known, rel_tol=ROUNDING)
            )
        ):
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
        """Return the judge's evaluation of a plan.

        The evaluations of the incumbent and of the last plan are cached.
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
        """Record a valid bound on the objective of every plan if it is the best bound so far."""
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
