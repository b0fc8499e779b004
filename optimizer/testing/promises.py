"""What every method promises, as checks that its author can run; specopt's own methods pass them, too."""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from specopt.api.library import instances_of_kind
from specopt.api.solve import methods, solve
from specopt.kinds.answers import NotConformant
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.files import load, save
from specopt.models.judge import verify
from specopt.models.problem import Problem
from specopt.models.result import Progress, Result, Status, Termination
from specopt.solvers.method import Method

QUICK_SECONDS = 0.5
"""What an answer without any time may take, on a small problem."""

SOME = 4
"""Small instances of the library that `check_method` takes, and larger ones of each size."""

LIMIT_SECONDS = 1.0
"""The time limit on larger instances."""


def check_method(method: Method, problems: Iterable[Problem] | None = None) -> None:
    """Check that a method keeps what `solve` promises: with judge, bounds, seeds, limits, callbacks, files, arguments.

    Parameters
    ----------
    method
        With the options to check.
    problems
        Small problems that it takes; None: some of the instance library.

    Raises
    ------
    NotConformant
        With the first promise that is broken.
    InvalidInput
        If there is no problem to check it on.
    """
    chosen = small_problems(method) if problems is None else list(problems)
    if not chosen:
        raise InvalidInput(f"problems: expected some that {method.name} takes, got none")
    check_declaration(method)
    for problem in chosen:
        case = Case(method, problem)
        check_status(case)
        check_rivals(case, [other() for other in methods(problem) if other.exact][:1])
        for check in (
            check_seed, check_no_time, check_gap, check_callback, check_stop, check_interrupt, check_files,
            check_warm_start, check_arguments,
        ):  # fmt: skip
            check(case)
    for problem in larger_problems(method) if problems is None else chosen:
        check_limit(Case(method, problem))


def small_problems(method: Method) -> list[Problem]:
    """Return small problems of the instance library that a method takes, each of which has a plan."""
    return list(islice(_taken(method, "small"), SOME))


def larger_problems(method: Method) -> list[Problem]:
    """Return larger problems of the instance library that a method takes, those of each size that are there."""
    return [problem for size in ("paper", "large", "adversarial") for problem in islice(_taken(method, size), SOME)]


def _taken(method: Method, size: str) -> Iterator[Problem]:
    for one in instances_of_kind(method.solves.kind).values():
        if one.size == size and method.refusal(problem := one.load()) is None:
            yield problem


class Case:
    """A method on a problem: what it answers there, and what is expected of it.

    Parameters
    ----------
    method, problem
        Of the checks.
    """

    def __init__(self, method: Method, problem: Problem) -> None:
        self.method, self.problem = method, problem
        self.sign = 1 if problem.sense == "minimize" else -1

    def solve(self, **keywords: Any) -> Result:
        """Solve the problem with the method."""
        return solve(self.problem, self.method, **keywords)

    @cached_property
    def answer(self) -> Result:
        """The result without keywords, solved once."""
        return self.checked()

    def checked(self, **keywords: Any) -> Result:
        """Solve the problem with the method, and check the result."""
        result = self.solve(**keywords)
        check_result(self, result)
        return result

    def gave_up(self, result: Result) -> bool:
        """Return whether the method ended without a plan, as it says that it may."""
        return self.method.may_fail and (result.status, result.termination) == (Status.NONE, Termination.EXHAUSTED)

    def expect(self, holds: bool, what: str) -> None:
        """Refuse the method if something does not hold."""
        if not holds:
            on = f"{self.problem.name or self.problem.kind} ({self.problem.sha256[:8]})"
            raise NotConformant(f"{self.method.name} on {on}: {what}", self.problem)

    @contextmanager
    def refused(self, error: type[Exception], start: str) -> Iterator[None]:
        """Expect an exception with a message that begins so."""
        found = None
        try:
            yield
        except error as raised:
            found = raised
        self.expect(str(found).startswith(start), f"expected {start!r} ..., got {found}")


def check_declaration(method: Method) -> None:
    """Check that a method says what it is, that its options have defaults, and that it is frozen."""
    for name in ("name", "source", "guarantee", "complexity"):
        if not getattr(method, name, ""):
            raise NotConformant(f"{method.name}: says nothing as its {name}")
    defaults = {field.name: field.default for field in dataclasses.fields(method)}
    if type(method)().options != defaults:
        raise NotConformant(f"{method.name}: has options whose values are not their defaults")
    try:
        method.anything = 1  # type: ignore[attr-defined]
    except dataclasses.FrozenInstanceError:
        return
    raise NotConformant(f"{method.name}: is not frozen: expected @dataclass(frozen=True)")


def check_result(case: Case, result: Result) -> None:
    """Check that a result is consistent, and that the judge agrees with it."""
    method, problem, expect = case.method, case.problem, case.expect
    expect(result.kind == problem.kind and result.problem_sha256 == problem.sha256, "answers another problem")
    expect(result.method == method.name, f"calls itself {result.method!r} in its result")
    expect(result.seconds >= 0, "took less than no time")
    proven = result.status is Status.OPTIMAL
    expect(proven or result.termination not in (Termination.CONVERGED, Termination.GAP), "ends proven without a proof")
    if result.status in (Status.INFEASIBLE, Status.NONE):
        expect(result.plan is None and result.objective is None and result.gap is None, "has a plan and denies it")
        expect(result.terms == {} and bool(result.explanation), "has no plan and does not say why")
        return
    assert result.objective is not None, "its status says so"
    expect(result.plan is not None and result.explanation is None, "has no plan, or excuses one")
    report = verify(problem, result)
    expect(report.feasible, f"has a plan that violates the problem: {report.violations}")
    expect(report.matches and report.objective == result.objective, "has another objective than the judge")
    if all(isinstance(term, float) for term in result.terms.values()):
        total = sum(result.terms.values())
        what = f"has terms of {total!r}, not {result.objective!r}"
        expect(math.isclose(total, result.objective, rel_tol=1e-12), what)
    if result.bound is not None:
        below = result.bound <= result.objective
        expect(below == (problem.sense == "minimize") or result.bound == result.objective, "has a bound it passes")
        gap = problem.gap(result.objective, result.bound)
        close = result.gap is not None and abs(result.gap - gap) <= max(method.tolerance, 1e-6 * gap)
        expect(close or (result.gap is None and not math.isfinite(gap)), f"has gap {result.gap!r}, not {gap!r}")


def check_status(case: Case) -> None:
    """Check that status, termination, judge and bound agree, that exact methods prove, that problems stay as they are.

    If the method says that there is no plan, specopt's own best method must agree.
    """
    before = case.problem.to_dict()
    result = case.answer
    case.expect(case.problem.to_dict() == before, "changed the problem")
    shown = f"ends as {result.status} by {result.termination}"
    if case.gave_up(result):
        return
    if result.objective is None and solve(case.problem).status is Status.INFEASIBLE:
        same = (result.status, result.termination) == (Status.INFEASIBLE, Termination.INFEASIBLE)
        case.expect(same, f"{shown}, though no plan is feasible")
        return
    ended = Termination.CONVERGED if result.status is Status.OPTIMAL else Termination.EXHAUSTED
    case.expect(result.termination is ended, f"{shown}, expected {ended}")
    right = (Status.OPTIMAL,) if case.method.exact else (Status.OPTIMAL, Status.FEASIBLE)
    case.expect(result.status in right, f"{shown}, expected {right[0]}")


def check_rivals(case: Case, rivals: Sequence[Method]) -> None:
    """Check that no rival beats an exact method, and that no bound cuts off what another has found."""
    for other in rivals:
        check_pair(case, Case(other, case.problem))


def check_pair(case: Case, other: Case) -> None:
    """Check that another method does not beat an exact one, and that no bound of it cuts off what the first found."""
    result, rival = case.answer, other.answer
    if result.objective is None or other.gave_up(rival):
        return
    name = other.method.name
    case.expect(rival.objective is not None, f"has a plan, but {name} finds none")
    assert rival.objective is not None, "it was asked"
    slack = max(case.method.tolerance, other.method.tolerance) * max(1.0, abs(result.objective))
    reach = case.sign * rival.objective
    if result.bound is not None:
        what = f"has the bound {result.bound!r}, but {name} reaches {rival.objective!r}"
        case.expect(reach >= case.sign * result.bound - slack, what)
    if case.method.exact:
        what = f"is exact at {result.objective!r}, but {name} reaches {rival.objective!r}"
        case.expect(reach >= case.sign * result.objective - slack, what)
    if rival.bound is not None:
        what = f"reaches {result.objective!r}, beyond the bound {rival.bound!r} of {name}"
        case.expect(case.sign * result.objective >= case.sign * rival.bound - slack, what)


def check_seed(case: Case) -> None:
    """Check that the same seed gives the same plan twice."""
    first, second = case.answer, case.solve()
    same = (first.plan, first.objective, first.bound) == (second.plan, second.objective, second.bound)
    case.expect(same, "gives two answers with one seed")


def check_no_time(case: Case) -> None:
    """Check that no time gives a quick plan or none, at once, and never a wrong claim."""
    for _ in range(3):  # a busy machine is no fault of the method, nor is what other threads of the process compile
        started = time.process_time()
        result = case.solve(time_limit=0)
        if (seconds := time.process_time() - started) < QUICK_SECONDS:
            break
    case.expect(seconds < QUICK_SECONDS, f"takes {seconds:.2g} s of the processor with a time limit of 0")
    check_result(case, result)
    if result.plan is None and result.status is not Status.INFEASIBLE and not case.gave_up(result):
        right = (result.status, result.termination) == (Status.NONE, Termination.TIME_LIMIT)
        case.expect(right, f"ends as {result.status} by {result.termination} without time")


def check_limit(case: Case) -> None:
    """Check that a time limit T is kept to 1.05 T + 0.05 s and what is reported as fixed, with a right result."""
    for _ in range(3):  # a busy machine is no fault of the method
        started = time.perf_counter()
        result = case.solve(time_limit=LIMIT_SECONDS)
        seconds = time.perf_counter() - started
        check_result(case, result)
        allowed = 1.05 * LIMIT_SECONDS + 0.05 + float(result.stats.get("fixed_seconds", 0.0))
        if seconds <= allowed:
            return
    case.expect(False, f"takes {seconds:.3g} s with a time limit of {LIMIT_SECONDS:g} s")


def check_gap(case: Case) -> None:
    """Check that with a wide gap every plan with a bound counts as optimal, and says that the gap did it."""
    result = case.checked(gap=1e9)
    if result.bound is not None:
        by = Termination.GAP if result.gap else Termination.CONVERGED
        right = (result.status, result.termination) == (Status.OPTIMAL, by)
        case.expect(right, f"ends as {result.status} by {result.termination} within any gap")


def check_callback(case: Case) -> None:
    """Check that progress is reported in time order, never gets worse, and that returning None changes nothing."""
    seen: list[Progress] = []
    result = case.checked(callback=seen.append)
    case.expect(bool(seen), "reports no progress: call budget.check() or budget.offer()")
    seconds = [progress.seconds for progress in seen]
    case.expect(seconds == sorted(seconds), "reports progress out of order")
    same = result.objective == case.answer.objective
    case.expect(same, "has another objective when it is watched")
    objectives = [case.sign * progress.objective for progress in seen if progress.objective is not None]
    case.expect(objectives == sorted(objectives, reverse=True), "reports plans that get worse")


def check_stop(case: Case) -> None:
    """Check that a callback that returns True ends the solve with the plan that there is, if there can be one."""
    result = case.checked(callback=lambda progress: True)
    if result.status is not Status.INFEASIBLE:
        case.expect(result.plan is not None, "has no plan when it is stopped: offer one first")
        right = result.termination in (Termination.INTERRUPTED, Termination.CONVERGED, Termination.EXHAUSTED)
        case.expect(right, f"ends by {result.termination} when it is stopped")


def check_interrupt(case: Case) -> None:
    """Check that Ctrl-C gives the best plan so far as a result."""

    def interrupt(progress: Progress) -> None:
        if progress.objective is not None:
            raise KeyboardInterrupt

    result = case.checked(callback=interrupt)
    if result.status is not Status.INFEASIBLE:
        right = result.plan is not None and result.termination is Termination.INTERRUPTED
        case.expect(right, f"ends by {result.termination} on Ctrl-C")


def check_files(case: Case) -> None:
    """Check that a saved result is the same result, that the judge agrees with it, and that it holds the options."""
    result = case.answer
    with tempfile.TemporaryDirectory() as folder:
        save(result, Path(folder, "result.json"))
        again = load(Path(folder, "result.json"))
    case.expect(isinstance(again, Result) and again.to_dict() == result.to_dict(), "is lost in a file")
    assert isinstance(again, Result), "it was asked"
    case.expect(again.plan is None or verify(case.problem, again).matches, "differs from the judge in a file")
    case.expect(type(case.method)(**again.options) == case.method, "has options that a file does not keep")


def check_warm_start(case: Case) -> None:
    """Check that a warm start is used, or refused with the methods that can use one."""
    earlier = solve(case.problem)
    if earlier.plan is None:
        return
    if case.method.supports_warm_start:
        result = case.checked(warm_start=earlier)
        assert earlier.objective is not None, "it has a plan"
        near = result.objective is not None and math.isclose(result.objective, earlier.objective, rel_tol=1e-9)
        case.expect(near, "loses the optimum that it starts from")
        return
    with case.refused(Unsupported, f"warm_start: method {case.method.name} cannot use one; methods that can: "):
        case.solve(warm_start=earlier)


def check_arguments(case: Case) -> None:
    """Check that arguments outside their domain are refused by name."""
    for limit in (-1, math.nan):
        with case.refused(InvalidInput, "time_limit: expected"):
            case.solve(time_limit=limit)
    for gap in (-0.1, math.inf, math.nan):
        with case.refused(InvalidInput, "gap: expected"):
            case.solve(gap=gap)
    for seed in (-1, 1.5, True):
        with case.refused(InvalidInput, "seed: expected"):
            case.solve(seed=seed)
