"""Evaluation of modified copies of a problem, one at a time.

Each copy is solved, judged or simulated.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

from specopt.api.solve import MethodLike, choose, methods, solve
from specopt.console.progress import end_progress, print_step
from specopt.kinds import kind_of
from specopt.models.problem import Problem
from specopt.models.result import Result, Termination
from specopt.solvers.method import Method

SHARE = 0.02
"""Share of the time limit that solving all alternative choices together may use."""

MAX_SECONDS = 1.0
"""Maximum time for solving all alternative choices together, in seconds."""


def scan(
    changes: Sequence[tuple[object, Any]],
    answer: Callable[[Any, float | None, Sequence[Any]], Any],
    *,
    started: float | None = None,
    time_limit: float | None = None,
    verbose: bool = False,
) -> list[Any]:
    """Apply a function to every modified copy of a problem.

    Parameters
    ----------
    changes
        Pairs of a name and a modified copy of the problem. The name describes the change and is
        shown as progress. If the copy cannot be made, a string with the reason replaces it.
    answer
        Function that is applied to each copy. The arguments of the function are the copy, a time
        limit in seconds or None, and the list of results for earlier copies.
    started
        Value of `time.perf_counter` at which the time limit starts; None for now.
    time_limit
        Time limit for all calls of `answer` together, in seconds. Each call may use an equal share
        of the time that remains.
    verbose
        Whether to print progress to stderr.

    Returns
    -------
    list
        One entry per change: the result of `answer`, or the reason why the copy could not be made.
        If a solve is interrupted, the list ends with the interrupted result.
    """
    started = time.perf_counter() if started is None else started
    total = todo = sum(not isinstance(copy, str) for _, copy in changes)
    answers: list[Any] = []
    try:
        for name, copy in changes:
            if isinstance(copy, str):
                answers.append(copy)
                continue
            elapsed = time.perf_counter() - started
            if verbose:
                print_step(
                    elapsed, f"{elapsed:7.1f} s  solve {total - todo + 1} of {total}: {name}"
                )
            limit = None if time_limit is None else max(0.0, time_limit - elapsed) / todo
            todo -= 1
            answers.append(answer(copy, limit, answers))
            if (
                isinstance(answers[-1], Result)
                and answers[-1].termination is Termination.INTERRUPTED
            ):
                break
    finally:
        if verbose:
            end_progress()
    return answers


def solving(method: MethodLike | None, start: int, **keywords: Any) -> Callable[..., Result]:
    """Return an `answer` function for `scan` that solves each modified copy.

    Each solve is warm-started with the plan of the earlier result at index `start`, provided that
    the method supports warm starts and the plan is feasible for the copy.
    """

    def answer(copy: Problem, limit: float | None, earlier: Sequence[Any]) -> Result:
        chosen = choose(copy, method)
        plan = earlier[start].plan if earlier and chosen.supports_warm_start else None
        if plan is not None and copy.violations(plan):
            plan = None
        return solve(copy, chosen, time_limit=limit, warm_start=plan, **keywords)

    return answer


def solve_with_choices(
    problem: Problem,
    method: str | Method | None = None,
    *,
    time_limit: float | None = None,
    **keywords: Any,
) -> Result:
    """Solve a problem, and report in `stats` whether another value of a fixed field is better.

    Each kind declares the alternative values of the fields that a problem fixes. Each alternative
    problem is solved with its default method, within a small share of the time limit, and its plan
    is judged. If the plan is better, the entry `unasked` of `stats` contains the fields to change,
    the method, and the objective of that plan.
    """
    choices = (kind_of(problem).choices or (lambda _: ()))(problem)
    if not choices or not (time_limit is None or time_limit > 0.0):
        return solve(problem, method, time_limit=time_limit, **keywords)
    spare = MAX_SECONDS if time_limit is None else min(MAX_SECONDS, SHARE * time_limit)
    result = solve(
        problem, method, time_limit=None if time_limit is None else time_limit - spare, **keywords
    )
    if result.objective is None or result.termination == "interrupted":
        return result
    copies = [
        (changes, copy)
        for changes in choices
        if methods(copy := dataclasses.replace(problem, **changes))
    ]
    others = scan(copies, lambda copy, limit, _: solve(copy, time_limit=limit), time_limit=spare)
    seconds = result.seconds
    best = result.objective
    found = {}
    for (changes, _), other in zip(copies, others, strict=False):
        seconds += other.seconds
        if other.objective is not None and (other.objective < best) == (
            problem.sense == "minimize"
        ):
            best = other.objective
            found = {"unasked": {"changes": changes, "method": other.method, "objective": best}}
    return dataclasses.replace(result, seconds=seconds, stats=result.stats | found)
