"""The function `solve`, which chooses a method, runs it within its limits, and judges its plan."""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from tempfile import NamedTemporaryFile
from types import MappingProxyType
from typing import Any

from specopt.api.plugins import METHODS, blamed, plugged, plugged_methods
from specopt.console.progress import end_progress, print_progress, showing_kernels
from specopt.kinds import kind_of, kinds
from specopt.kinds.answers import Solver, plan_of_answer
from specopt.models.arguments import integer, is_number, number
from specopt.models.errors import (
    BrokenPlugin,
    Infeasible,
    InternalError,
    InvalidInput,
    OutOfMemory,
    OutOfTime,
    RefutedProof,
    Stopped,
    Unsupported,
    did_you_mean,
)
from specopt.models.fields import describe
from specopt.models.judge import Proof, proof_of
from specopt.models.problem import ROUNDING, P, Plan, Problem, refuse_subclass
from specopt.models.result import SOLVED, Result, Status, Termination
from specopt.solvers.auto import Auto
from specopt.solvers.budget import MEMORY_LIMIT, Budget, Callback
from specopt.solvers.kernels.cache import NO_CACHE, folder
from specopt.solvers.kernels.compiling import checked
from specopt.solvers.method import Method, Outcome

logger = logging.getLogger("specopt")

MethodLike = str | Method | Solver
"""Types accepted as a method: a name, a `Method`, or a function that maps a problem to a plan."""

LAST_SECONDS = 10.0
"""Time beyond the time limit that is allowed for validation and judging, in seconds.

This is enough for a million tasks. A method whose uninterruptible work exceeds the time limit by
more than this time is refused.
"""

LONG_SECONDS = 60.0
"""Expected duration of uninterruptible work, in seconds, above which `solve` issues a warning if
there is no time limit.
"""


def solve(
    problem: Problem[P],
    method: MethodLike | None = None,
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    memory_limit: float = MEMORY_LIMIT,
    warm_start: Result | Plan | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    **options: Any,
) -> Result[P]:
    """Solve a problem, and return a result with a judged plan and, if available, a bound.

    Parameters
    ----------
    problem
        Problem to solve.
    method
        Name of a method, a `Method` object with its options, a function that maps a problem to a
        plan, or None for `auto`, the portfolio of the problem's kind. If a function is given, the
        result has no bound.
    time_limit
        Time limit in seconds, including compilation. Fixed work, without which the method cannot
        return any result, may exceed the limit and is reported as `fixed_seconds` in `stats`. A
        method is refused if its fixed work is known to take much longer than the limit. With a
        limit of 0, the result is a quick plan if the method can find such a plan. With None, the
        work of `auto` is limited instead, so that every machine returns the same plan. With
        `math.inf`, the solve continues until the plan is proven optimal. In both cases, a warning
        is issued if the fixed work is long.
    gap
        Relative gap between objective and bound at which the method may stop.
    seed
        Seed for all random numbers. Equal seeds yield equal plans.
    workers
        Number of cores that an exact search may use. Only the methods `exact` and `brute-force`
        for `serving-latency` use more than one core. If the search completes, plan and bound do not
        depend on the number of cores.
    memory_limit
        Maximum amount of memory that the method may use, in bytes. A method that is known to need
        more is refused. A method that reaches the limit while running returns its best plan so far,
        and `stats` reports that memory ran out.
    warm_start
        Earlier result or plan to start from, for methods that support warm starts. `auto` repairs
        a plan for a similar problem if the difference is simple: different rates or limits; one
        task, request or client more or less; or a different prompt.
    callback
        Function that is called with a `Progress` object while the method runs. The method stops if
        the function returns True.
    verbose
        Whether to print progress to stderr.
    options
        Options for a method that is specified by name, as in
        `solve(problem, "static-batching", size=4)`.

    Returns
    -------
    Result
        The result, even if the problem is infeasible or the time limit expired.
        After Ctrl-C, it contains the best plan so far. If the plan refutes a proof claimed by the
        method, the proof is dropped, a `RefutedProof` warning is issued, and `stats` contains the
        entry `refuted`.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or if the problem is an instance of a subclass of the
        kind's problem class.
    Unsupported
        If the method does not exist or cannot solve this problem. The message lists the methods
        that can.
    InternalError
        If the method returned a plan that violates the problem's constraints.
    """
    started = time.perf_counter()
    check_arguments(problem, time_limit, gap, seed, memory_limit)
    integer("workers", workers, 1)
    check_callback(callback)
    chosen = choose(problem, method, memory_limit, options)
    _check_seconds(problem, chosen, math.inf if time_limit is None else time_limit)
    label = f"{problem.kind} by {chosen.name}"
    logger.info(f"{label}: time limit {time_limit} s, gap {gap:g}, seed {seed}")
    # hashing a large problem takes time, which counts towards the time limit
    SOLVED[problem.sha256] = problem
    callback = _printing(callback) if verbose else callback
    fixed = time.perf_counter() - started
    budget = Budget(
        problem,
        time_limit=time_limit,
        gap=max(0.0, gap - 2.0 * ROUNDING * (1.0 + gap)),  # offsets the later widening of the bound
        seed=seed,
        workers=workers,
        memory_limit=memory_limit,
        warm_start=_warm_plan(problem, chosen, warm_start),
        callback=callback,
        started=started,
    )
    outcome = _run(chosen, problem, budget, verbose)
    result = _judged(problem, chosen, outcome, budget, gap, fixed)
    logger.info(
        f"{label}: {result.status.value} ({result.termination.value}), objective"
        f" {result.objective}, bound {result.bound}, {result.seconds:.3g} s"
    )
    logger.debug("%s: %s", label, result.stats)
    return result


_ARGUMENTS = [name for name in inspect.signature(solve).parameters if name != "options"]


def methods(problem: Problem | type[Problem] | None = None) -> tuple[type[Method], ...]:
    """Return the methods that can solve a problem.

    For a problem class, return all methods for that kind of problem; for None, return the methods
    for all kinds. Methods from plug-ins come last.
    """
    if problem is None:
        return tuple(method for kind in kinds() for method in methods(kind.problem))
    kind = kind_of(problem)
    found = kind.methods + plugged_methods(kind.name)
    if isinstance(problem, Problem):
        return tuple(m for m in found if _takes(m, problem))
    return found


def _takes(method: type[Method], problem: Problem) -> bool:
    try:
        with blamed(method):
            return method().refusal(problem) is None
    except BrokenPlugin as error:
        logger.warning("%s", error)
        return False


def _run(method: Method, problem: Problem, budget: Budget, verbose: bool) -> Outcome:
    """Run a method and return its outcome, even if time or memory runs out or on interruption."""
    stats: dict[str, Any] = {}
    explanation = None
    try:
        with (
            showing_kernels() if verbose else nullcontext(),
            blamed(type(method)),
            checked(budget.check),
        ):
            outcome = method.run(problem, budget)
            if not isinstance(outcome, Outcome):
                raise TypeError(f"run: expected an Outcome, got {describe(outcome)}")
            if not isinstance(outcome.plan, problem.plan_type | None):
                raise TypeError(
                    f"run: expected a plan of type {problem.plan_type.__name__}, got"
                    f" {describe(outcome.plan)}"
                )
            if outcome.bound is not None and math.isfinite(outcome.bound):
                budget.improve_bound(outcome.bound)
            return outcome
    except Infeasible as clash:
        refuting = budget.incumbent is not None and not problem.violations(budget.incumbent)
        return Outcome(
            plan=budget.incumbent if refuting else None,
            termination=Termination.INFEASIBLE,
            explanation=str(clash),
            conflict=() if refuting else clash.conflicts,
        )
    except OutOfTime:
        termination = Termination.TIME_LIMIT
    except (Stopped, KeyboardInterrupt):
        termination = Termination.INTERRUPTED
    except (OutOfMemory, MemoryError) as error:
        termination = Termination.INTERRUPTED
        stats = {"out_of_memory": str(error)}
        explanation = None if budget.incumbent is not None else str(error)
    finally:
        if verbose:
            end_progress()
    return Outcome(
        plan=budget.incumbent,
        termination=termination,
        stats=stats,
        explanation=explanation,
    )


def method_named(kind: str, name: str) -> type[Method] | None:
    """Return the method of a kind with a given name, or None if there is no such method.

    Built-in methods take precedence over plug-ins.

    Raises
    ------
    InvalidInput
        If the kind does not exist.
    BrokenPlugin
        If the plug-in with that name cannot be used.
    """
    own = next((m for m in kind_of(kind).methods if m.name == name), None)
    return own or plugged(METHODS, f"{kind}.{name}")


def is_function(method: object) -> bool:
    """Return whether an argument is a plain function and not a name, a `Method` or a class."""
    return callable(method) and not isinstance(method, (str, Method, type))


@cache
def method_of_function(function: Callable[[Any], Any], problem: type[Problem]) -> Method:
    """Wrap a function that maps a problem to a plan as a method, whose results have no bound."""

    @dataclass(frozen=True)
    class Function(Method):
        name = getattr(function, "__name__", type(function).__name__)
        solves = problem
        source = f"{function.__module__}.{name}"
        guarantee = "none"
        complexity = "that of the function"
        may_fail = True
        called = staticmethod(function)

        def run(self, problem: Any, budget: Budget) -> Outcome:
            """Call the wrapped function once, and return its plan as an outcome."""
            plan = plan_of_answer(self.called(problem), problem)
            if plan is not None:
                problem.expect_plan(plan)
                if violations := problem.violations(plan):
                    raise InvalidInput(
                        f"{self.name}: the plan violates the problem: {violations[0]}"
                    )
            return Outcome(plan=plan)

    Function.__module__ = function.__module__  # results look up their sources in this module
    return Function()


def choose(
    problem: Problem,
    method: MethodLike | None,
    memory_limit: float = MEMORY_LIMIT,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Method:
    """Return the method that `solve` runs for a `method` argument and its options.

    Options are accepted only if the method is specified by name.

    Raises
    ------
    InvalidInput
        If the method does not have one of the options, or if an option is outside its domain.
    Unsupported
        If the method does not exist or cannot solve this problem.
    """
    if options and not isinstance(method, str):
        name = next(iter(options))
        raise InvalidInput(
            f"{name}: solve has no such argument{did_you_mean(name, _ARGUMENTS)}; options require"
            " the name of a method"
        )
    if method is None:
        return _best(problem, memory_limit)
    if isinstance(method, str):
        method = _named(problem, method, options)
    if is_function(method):
        method = method_of_function(method, type(problem))
    if not isinstance(method, Method):
        raise InvalidInput(
            f"method: expected a name, a method or a function, got {describe(method)}"
        )
    reason = None if isinstance(problem, method.solves) else f"it solves {method.solves.kind}"
    with blamed(type(method)):
        reason = reason or method.refusal(problem, memory_limit)
    if reason is not None:
        able = ", ".join(m.name for m in methods(problem)) or "none"
        raise Unsupported(
            f"method {method.name} cannot solve this problem: {reason}; methods that can: {able}"
        )
    return method


def _named(problem: Problem, name: str, options: Mapping[str, Any]) -> Method:
    """Return a method for a problem, given the name and the options of the method."""
    found = method_named(problem.kind, name)
    if found is None:
        names = [m.name for m in methods(type(problem))]
        meant = did_you_mean(name, names)
        raise Unsupported(
            f"method: {problem.kind} has no method {name!r}{meant}; its methods: {', '.join(names)}"
        )
    has = [field.name for field in dataclasses.fields(found)]
    for option in options:
        if option not in has:
            meant = did_you_mean(option, [*has, *_ARGUMENTS])
            raise InvalidInput(
                f"{option}: method {name} has no such option{meant}; its options:"
                f" {', '.join(has) or 'none'}"
            )
    return found(**options)


def _best(problem: Problem, memory_limit: float) -> Method:
    """Return the first method of the problem's kind that can solve the problem.

    This is usually the portfolio.
    """
    methods = kind_of(problem).methods
    for method in methods:
        if (found := method()).refusal(problem, memory_limit) is None:
            return found
    reason = methods[0]().refusal(problem, memory_limit)
    raise Unsupported(f"no method for {problem.kind} can solve this problem; {reason}")


def check_arguments(
    problem: object,
    time_limit: object,
    gap: object,
    seed: object,
    memory_limit: object = MEMORY_LIMIT,
) -> None:
    """Raise an error if an argument of `solve` is outside its domain."""
    if not isinstance(problem, Problem):
        raise InvalidInput(f"problem: expected a specopt problem, got {describe(problem)}")
    refuse_subclass(problem)
    if not (
        time_limit is None or time_limit == math.inf or (is_number(time_limit) and time_limit >= 0)
    ):
        raise InvalidInput(
            f"time_limit: expected a number of seconds >= 0, or None, got {describe(time_limit)}"
        )
    number("gap", gap, 0)
    integer("seed", seed, 0)
    if memory_limit != math.inf:
        number("memory_limit", memory_limit, above=0)


def check_callback(callback: object) -> None:
    """Raise InvalidInput if a callback is neither callable nor None."""
    if callback is not None and not callable(callback):
        raise InvalidInput(f"callback: expected a function or None, got {describe(callback)}")


def _check_seconds(problem: Problem, method: Method, time_limit: float) -> None:
    """Refuse a method whose uninterruptible work exceeds the time limit by too much.

    If the time limit is infinite, warn about a method with long uninterruptible work instead.
    """
    with blamed(type(method)):
        needs = method.seconds_needed(problem)
    total = sum(needs.values())
    if total <= min(LAST_SECONDS + time_limit, LONG_SECONDS):
        return
    said = (
        f"{max(needs, key=needs.__getitem__)} take about {total:.2g} seconds and cannot"
        " be interrupted"
    )
    if total > LAST_SECONDS + time_limit:
        raise Unsupported(f"method {method.name} cannot honor time_limit {time_limit:g}: {said}")
    if time_limit == math.inf:
        warnings.warn(f"method {method.name}: {said}", stacklevel=3)


def _warm_plan(problem: Problem, method: Method, warm_start: Result | Plan | None) -> Plan | None:
    if warm_start is None:
        return None
    if not method.supports_warm_start:
        able = ", ".join(m.name for m in methods(problem) if m.supports_warm_start) or "none"
        raise Unsupported(
            f"warm_start: method {method.name} cannot use a warm start; methods that can: {able}"
        )
    plan = warm_start.plan if isinstance(warm_start, Result) else warm_start
    if not isinstance(plan, problem.plan_type):
        raise InvalidInput(
            f"warm_start: expected a plan for a {problem.kind} problem, got {describe(plan)}"
        )
    if violations := problem.violations(plan):
        plan = method.repaired(problem, plan) if isinstance(method, Auto) else None
        if plan is None or problem.violations(plan):
            raise InvalidInput(f"warm_start: the plan is not feasible: {violations[0]}")
    return plan


def _printing(callback: Callback | None) -> Callback:
    def both(progress: Any) -> bool | None:
        print_progress(progress)
        return callback(progress) if callback is not None else None

    return both


def _judged(
    problem: Problem[P], method: Method, outcome: Outcome, budget: Budget, gap: float, fixed: float
) -> Result[P]:
    """Convert a method's outcome to a result, whose objective is computed by the judge.

    `fixed` is the time in seconds that was spent on validating and hashing the problem.
    """
    bound = None  # kept if the bound is infinite
    termination = outcome.termination
    known = None if termination is Termination.INFEASIBLE else budget.bound
    if known is not None and math.isfinite(known):
        bound = problem.widened(float(known), problem.scale)
    objective = None
    terms = {}
    proof = Proof(bound)
    stats = dict(outcome.stats)
    status, explanation = Status.NONE, outcome.explanation
    if outcome.plan is None and termination is Termination.INFEASIBLE:
        status = Status.INFEASIBLE
    elif outcome.plan is None:
        termination = _ended(termination, Proof(), budget, gap)
        explanation = explanation or "no plan was found"
    else:
        judging = time.perf_counter()
        violations = problem.violations(outcome.plan)
        fixed += time.perf_counter() - judging
        if violations:
            said = _saved(problem, method, outcome, known, f"a plan that violates: {violations[0]}")
            raise InternalError(f"internal error: {said}")
        evaluation = budget.evaluate(outcome.plan)
        fixed += budget.judging_seconds
        objective, terms = evaluation.objective, evaluation.terms
        proof = proof_of(
            type(problem), objective, bound, method.tolerance, problem.scale, evaluation.size
        )
        wrong = None
        if termination is Termination.INFEASIBLE:
            wrong = f"a plan, but also a proof that none exists: {explanation}"
            termination, explanation = Termination.EXHAUSTED, None
        elif proof.refuted:
            wrong = f"the bound {known!r}, but a plan with the objective {objective!r}"
        termination = _ended(termination, proof, budget, gap)
        optimal = proof.gap is not None and proof.gap <= gap
        status = Status.OPTIMAL if optimal else Status.FEASIBLE
        if wrong is not None:
            stats["refuted"] = _saved(problem, method, outcome, known, wrong)
            warnings.warn(stats["refuted"], RefutedProof, stacklevel=3)
    if isinstance(method, Auto):
        stats |= {"plan_by": budget.plan_by, "bound_by": budget.bound_by}
    if budget.preparing_seconds and not folder():
        stats["no_cache"] = NO_CACHE
    return Result(
        kind=problem.kind,
        problem_sha256=problem.sha256,
        method=method.name,
        options=method.options,
        status=status,
        termination=termination,
        objective=objective,
        bound=proof.bound,
        gap=proof.gap,
        seconds=budget.seconds,
        plan=outcome.plan,
        terms=terms,
        stats=stats | {"fixed_seconds": fixed, "preparing_seconds": budget.preparing_seconds},
        explanation=explanation,
        conflict=outcome.conflict,
        versions=_versions(),
    )


def _ended(said: Termination, proof: Proof, budget: Budget, gap: float) -> Termination:
    """Return the reason why a method stopped, corrected if the proof does not support its claim.

    In particular, a method without a proof is never reported as converged.
    """
    if proof.gap is not None and 0.0 < proof.gap <= gap:
        return Termination.GAP
    if said in (Termination.INFEASIBLE, Termination.INTERRUPTED):
        return said
    if proof.gap == 0.0:
        return Termination.CONVERGED
    if said in (Termination.TIME_LIMIT, Termination.WORK_LIMIT):
        return said
    late = budget.cut_short or budget.remaining == 0.0
    return Termination.TIME_LIMIT if late else Termination.EXHAUSTED


def _saved(
    problem: Problem, method: Method, outcome: Outcome, bound: float | None, defect: str
) -> str:
    """Save an outcome that the judge rejected to a file for a bug report.

    Return the error message, which names the file.
    """
    case = {
        "problem": problem.to_dict(),
        "method": method.name,
        "options": method.options,
        "plan": None if outcome.plan is None else outcome.plan.to_dict(),
        "bound": bound,
        "returned": defect,
    }
    try:
        with NamedTemporaryFile(
            "w", prefix="specopt-internal-error-", suffix=".json", delete=False
        ) as file:
            json.dump(case, file, default=str)
        where = f"the case is saved in {file.name}; please report it"
    except (OSError, TypeError, ValueError) as error:
        where = f"the case cannot be saved ({getattr(error, 'strerror', None) or error})"
    return f"method {method.name} of {problem.kind} returned {defect}; {where}"


@cache
def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


def _versions() -> dict[str, str]:
    """Return library versions by name: of the libraries that every solve uses, and of other solver
    libraries that are loaded.
    """
    always = ("specopt", "numpy", "numba", "scipy", "highspy")
    others = (name for name in ("pyomo", "cvxpy", "clarabel") if name in sys.modules)
    return {name: _version(name) for name in (*always, *others)}
