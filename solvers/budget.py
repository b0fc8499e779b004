"""The budget of a solve, which stores a method's limits together with the best plan and the best
bound found so far.
"""

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
"""Default memory limit of a solve, in bytes. The limit does not include memory that the process
already uses.
"""

LAST_SECONDS = 0.025
"""Time, in seconds, that the evaluation of a method's last plan may take beyond 1.05 times the time
limit.

It is half of the delay that is tolerated for a result.
"""

LARGE = 2**26
"""Size, in bytes, above which arrays are compared not only with the memory limit but also with the
free memory.
"""

Callback = Callable[[Progress], bool | None]


def shortage(fields: str, size: float, limit: float) -> str | None:
    """Return an error message if arrays of `size` bytes exceed the available memory, and otherwise
    None.

    `fields` names the problem fields that determine the size, for use in the message. The size is
    compared with `limit` and, if it is large, with the free memory. An infinite limit is never
    exceeded.
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
    """The limits of a solve, and the best plan and the best bound found so far.

    Parameters
    ----------
    problem
        Problem to solve. It evaluates every plan that the method finds.
    time_limit
        Time limit in seconds, counted from `started`, or None for no time limit.
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
        Function that is repeatedly called with the progress. If it returns True, the method stops.
    started
        Value of `time.perf_counter` at which the clock starts. None stands for the current time.
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
        """Raise an exception if the solve must stop or if the work limit is reached.

        The solve must stop if the caller has requested it, or if the time limit is reached within
        the next `ahead` seconds.
        """
        super().check(ahead)
        if self.work_left <= 0.0:
            raise OutOfWork

    def spend(self, seconds: float) -> None:
        """Charge work against the work limit, in seconds on one core.

        Methods convert operations to seconds at a fixed rate, so a method reaches its work limit at
        the same point on every machine.
        """
        self.work_left -= seconds

    def is_proven(self, tolerance: float) -> bool:
        """Return whether the relative gap between the plan's objective and the bound is at most the
        requested gap or 90 % of `tolerance`, whichever is larger.
        """
        if self.objective is None or self.bound is None:
            return False
        return self.problem.gap(self.objective, self.bound) <= max(self.gap, 0.9 * tolerance)

    def hold(self, fields: str, size: float) -> None:
        """Check that arrays fit in memory before they are allocated.

        `size` is the total size of the arrays, in bytes, and `fields` lists the problem fields that
        determine this size.

        Raises
        ------
        OutOfMemory
            If the arrays exceed the memory limit or the free memory.
        """
        lacking = shortage(fields, size, self.memory_limit)
        if lacking is not None:
            raise OutOfMemory(lacking)

    def offer(self, plan: Plan) -> float:
        """Evaluate a feasible plan, and return its objective. If the plan improves on the
        incumbent, record it as the new incumbent and report it.

        Raises
        ------
        OutOfTime
            If there is an incumbent, and evaluating another plan would exceed the time limit by
            more than a tolerance. The evaluation is expected to take as long as the previous one.
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
        """Evaluate a plan without recording it.

        The evaluations of the incumbent and of the most recent plan are cached.
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
        """Evaluate the warm start, if there is one, and record it as the incumbent if it improves
        on the current one.
        """
        if self.warm_start is not None:
            self.offer(self.warm_start)

    def improve_bound(self, bound: float) -> None:
        """Record a valid bound on the objective of every plan if it improves on the best bound so
        far.
        """
        if self.bound is None or self._better(self.bound, bound):
            self.bound, self.bound_by = bound, self.member
            self.report()

    def report(self) -> None:
        """Report the progress to the callback, and record whether the callback requests a stop."""
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
