"""Checks of the guarantees that every method must satisfy.

The checks are intended for authors of methods. The methods of specopt pass these checks.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from specopt.api.library import instances_of_kind
from specopt.api.solve import methods, solve
from specopt.kinds.answers import NotConformant
from specopt.models.errors import InvalidInput
from specopt.models.files import load, save
from specopt.models.judge import verify
from specopt.models.problem import Problem
from specopt.models.result import Progress, Result, Status, Termination
from specopt.solvers.method import Method

WITH_PLAN = (Status.OPTIMAL, Status.FEASIBLE)
"""Statuses of results that contain a plan."""

QUICK_SECONDS = 0.5
"""Maximum processor time of a solve with a time limit of 0 on a small problem, in seconds."""

SOME = 4
"""Number of library instances of each size on which `check_method` runs a method."""

LIMIT_SECONDS = 1.0
"""Time limit for solving larger instances, in seconds."""


def check_method(method: Method, problems: Iterable[Problem] | None = None) -> None:
    """Check that a method satisfies the guarantees of `solve`.

    The checks cover bounds, seeds, limits, callbacks, files and warm starts.

    Parameters
    ----------
    method
        Method to check, with its options.
    problems
        Small problems that the method can solve; None for some instances of the library.

    Raises
    ------
    NotConformant
        If a guarantee is violated.
    InvalidInput
        If there are no problems for the check.
    """
    chosen = larger = list(problems or ())
    if problems is None:
        chosen = problems_of_library(method, "small")
        larger = problems_of_library(method, "paper", "large", "adversarial")
    if not chosen:
        raise InvalidInput(
            f"problems: {method.name} cannot solve any of the default problems; specify problems"
            " that it can solve"
        )
    check_declaration(method)
    for problem in chosen:
        case = Case(method, problem)
        check_status(case)
        if exact := [other for other in methods(problem) if other.exact]:
            check_pair(case, Case(exact[0](), problem))
        for check in (
            check_seed,
            check_no_time,
            check_gap,
            check_callback,
            check_stop,
            check_interrupt,
            check_files,
            check_warm_start,
        ):
            check(case)
    for problem in larger:
        check_limit(Case(method, problem))


def problems_of_library(method: Method, *sizes: str) -> list[Problem]:
    """Return, for each size class, some library problems that a method can solve."""
    found: list[Problem] = []
    for size in sizes:
        problems = (
            one.load() for one in instances_of_kind(method.solves.kind).values() if one.size == size
        )
        found += islice((problem for problem in problems if method.refusal(problem) is None), SOME)
    return found


class Case:
    """A method applied to a problem, together with the result.

    Parameters
    ----------
    method
        Method to check.
    problem
        Problem to solve.
    """

    def __init__(self, method: Method, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.sign = 1 if problem.sense == "minimize" else -1

    def solve(self, **keywords: Any) -> Result:
        """Solve the problem with the method, and return the result."""
        return solve(self.problem, self.method, **keywords)

    @cached_property
    def answer(self) -> Result:
        """Checked result of solving with default arguments, which is computed only once."""
        return self.checked()

    def checked(self, **keywords: Any) -> Result:
        """Solve the problem with the method, and check that the judge agrees with the result."""
        result = self.solve(**keywords)
        if result.plan is not None:
            report = verify(self.problem, result)
            self.expect(report.feasible and report.matches, f"differs from the judge: {report}")
        return result

    def gave_up(self, result: Result) -> bool:
        """Return whether the method ended without a plan in a way that its declaration allows."""
        return self.method.may_fail and (result.status, result.termination) == (
            Status.NONE,
            Termination.EXHAUSTED,
        )

    def expect(self, holds: bool, defect: str) -> None:
        """Raise `NotConformant` if a condition does not hold."""
        if not holds:
            on = f"{self.problem.name or self.problem.kind} ({self.problem.sha256[:8]})"
            raise NotConformant(f"{self.method.name} on {on}: {defect}", self.problem)

    def ends(
        self,
        result: Result,
        terminations: Sequence[Termination],
        statuses: Sequence[Status] = tuple(Status),
        when: str = "",
    ) -> None:
        """Raise `NotConformant` unless a result has one of the given terminations and statuses."""
        right = result.termination in terminations and result.status in statuses
        self.expect(right, f"ends as {result.status} by {result.termination}{when}")


def check_declaration(method: Method) -> None:
    """Check the declaration of a method.

    The method must declare its properties, its options must have defaults, and the class must be
    frozen.
    """
    for name in ("name", "source", "guarantee", "complexity"):
        if not getattr(method, name, ""):
            raise NotConformant(f"{method.name}: has no {name}; declare it")
    defaults = {field.name: field.default for field in dataclasses.fields(method)}
    if type(method)().options != defaults:
        raise NotConformant(f"{method.name}: some options are not set to their default values")
    try:
        method.anything = 1  # type: ignore[attr-defined]
    except dataclasses.FrozenInstanceError:
        return
    raise NotConformant(f"{method.name}: is not frozen: expected @dataclass(frozen=True)")


def check_status(case: Case) -> None:
    """Check that status, termination, judge and bound agree, and that the problem is unchanged.

    Exact methods must also prove optimality. If the method reports that no plan exists, the default
    method of specopt must agree.
    """
    before = case.problem.to_dict()
    result = case.answer
    case.expect(case.problem.to_dict() == before, "changed the problem")
    if case.gave_up(result):
        return
    if result.objective is None and solve(case.problem).status is Status.INFEASIBLE:
        case.ends(
            result, [Termination.INFEASIBLE], [Status.INFEASIBLE], ", though no plan is feasible"
        )
        return
    ended = Termination.CONVERGED if result.status is Status.OPTIMAL else Termination.EXHAUSTED
    right = [Status.OPTIMAL] if case.method.exact else WITH_PLAN
    case.ends(result, [ended], right, f", expected {right[0]} by {ended}")


def check_pair(case: Case, other: Case) -> None:
    """Check that two methods do not contradict each other.

    An exact method must not be beaten by the other method, and neither method's plan may be better
    than the other method's bound.
    """
    result, found = case.answer, other.answer
    if result.objective is None or other.gave_up(found):
        return
    name = other.method.name
    mine = result.objective
    its = found.objective
    slack = max(case.method.tolerance, other.method.tolerance) * max(1.0, abs(mine))

    if its is None:
        case.expect(False, f"has a plan, but {name} finds none")
        return
    for reached, limit, defect in (
        (
            its,
            result.bound,
            f"has the bound {result.bound!r}, but {name} reaches the objective {its!r}",
        ),
        (
            its,
            mine if case.method.exact else None,
            f"claims the optimum {mine!r}, but {name} reaches the objective {its!r}",
        ),
        (
            mine,
            found.bound,
            f"has the objective {mine!r}, beyond the bound {found.bound!r} of {name}",
        ),
    ):
        is_beyond = limit is not None and case.sign * reached < case.sign * limit - slack
        case.expect(not is_beyond, defect)


def check_seed(case: Case) -> None:
    """Check that two solves with the same seed return the same plan."""
    first, second = (
        (result.plan, result.objective, result.bound) for result in (case.answer, case.solve())
    )
    case.expect(first == second, "gives two answers with the same seed")


def check_no_time(case: Case) -> None:
    """Check that a solve with a time limit of 0 ends quickly and makes no false claim.

    The solve may end without a plan.
    """
    # repeated, because the machine may be busy or other threads of the process may compile
    for _ in range(3):
        started = time.process_time()
        result = case.checked(time_limit=0)
        if (seconds := time.process_time() - started) < QUICK_SECONDS:
            break
    case.expect(
        seconds < QUICK_SECONDS, f"takes {seconds:.2g} s of processor time with a time limit of 0"
    )
    if result.plan is None and result.status is not Status.INFEASIBLE and not case.gave_up(result):
        case.ends(result, [Termination.TIME_LIMIT], [Status.NONE], " without time")


def check_limit(case: Case) -> None:
    """Check that a solve exceeds its time limit T by at most 0.05 T + 0.05 s plus the fixed time.

    The fixed time is the value `fixed_seconds` in the statistics of the result.
    """
    for _ in range(3):  # repeated, because the machine may be busy
        started = time.perf_counter()
        result = case.solve(time_limit=LIMIT_SECONDS)
        seconds = time.perf_counter() - started
        allowed = 1.05 * LIMIT_SECONDS + 0.05 + float(result.stats.get("fixed_seconds", 0.0))
        if seconds <= allowed:
            return
    case.expect(False, f"takes {seconds:.3g} s with a time limit of {LIMIT_SECONDS:g} s")


def check_gap(case: Case) -> None:
    """Check that a plan with a bound counts as optimal if a very wide gap is allowed."""
    result = case.checked(gap=1e9)
    if result.bound is not None:
        by = Termination.GAP if result.gap else Termination.CONVERGED
        case.ends(result, [by], [Status.OPTIMAL], " within any gap")


def check_callback(case: Case) -> None:
    """Check that progress is reported in order and that objectives never become worse.

    A callback that returns None must not change the result.
    """
    seen: list[Progress] = []
    result = case.checked(callback=seen.append)
    case.expect(bool(seen), "reports no progress: call budget.check() or budget.offer()")
    seconds = [progress.seconds for progress in seen]
    case.expect(seconds == sorted(seconds), "reports progress out of order")
    same = result.objective == case.answer.objective
    case.expect(same, "has another objective when a callback watches it")
    objectives = [
        case.sign * progress.objective for progress in seen if progress.objective is not None
    ]
    case.expect(objectives == sorted(objectives, reverse=True), "reports plans that get worse")


def check_stop(case: Case) -> None:
    """Check that a solve ends with its current plan, if any, when a callback returns True."""
    result = case.checked(callback=lambda progress: True)
    if result.status is not Status.INFEASIBLE:
        case.expect(result.plan is not None, "has no plan when it is stopped: offer one first")
        right = (Termination.INTERRUPTED, Termination.CONVERGED, Termination.EXHAUSTED)
        case.ends(result, right, when=" when it is stopped")


def check_interrupt(case: Case) -> None:
    """Check that after Ctrl-C, the result contains the best plan found so far."""

    def interrupt(progress: Progress) -> None:
        if progress.objective is not None:
            raise KeyboardInterrupt

    result = case.checked(callback=interrupt)
    if result.status is not Status.INFEASIBLE:
        case.ends(result, [Termination.INTERRUPTED], WITH_PLAN, " on Ctrl-C")


def check_files(case: Case) -> None:
    """Check that a result is unchanged after saving and reading, and that the judge confirms it."""
    result = case.answer
    with tempfile.TemporaryDirectory() as folder:
        save(result, Path(folder, "result.json"))
        again = load(Path(folder, "result.json"))
    case.expect(
        isinstance(again, Result) and again.to_dict() == result.to_dict(),
        "changes its result when it is saved in a file",
    )
    assert isinstance(again, Result), "checked above"
    case.expect(
        again.plan is None or verify(case.problem, again).matches,
        "differs from the judge when it is saved in a file",
    )
    case.expect(
        type(case.method)(**again.options) == case.method, "has options that are lost in a file"
    )


def check_warm_start(case: Case) -> None:
    """Check that a method that supports warm starts returns a plan as good as the initial plan."""
    earlier = solve(case.problem)
    if earlier.objective is None or not case.method.supports_warm_start:
        return
    result = case.checked(warm_start=earlier)
    reached = math.nan if result.objective is None else result.objective
    near = math.isclose(reached, earlier.objective, rel_tol=1e-9)
    case.expect(near, "loses the optimum from which it starts")
