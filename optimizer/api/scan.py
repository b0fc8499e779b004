"""Evaluation of modified copies of a problem, one at a time: each is solved, judged or
simulated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from specopt.api.functions import MethodLike
from specopt.api.solve import choose, solve
from specopt.console.progress import end_progress, print_step
from specopt.models.problem import Problem
from specopt.models.result import Result, Termination


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
        Pairs of the name of a change, which is shown as progress, and the modified copy. If the
        copy does not exist, a text that gives the reason takes its place.
    answer
        Function of a modified copy, its time limit in seconds (None: no limit), and the list of
        earlier answers.
    started
        Reading of `time.perf_counter` from which the time limit counts; default: now.
    time_limit
        Time limit for all answers together, in seconds. Each answer may use an equal share of the
        remaining time.
    verbose
        Whether to print progress to stderr.

    Returns
    -------
    list
        The answer for each change, or the reason why the answer is missing. If a solve is
        interrupted, its result is the last entry.
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
    """Return a function for `scan` that solves a modified copy of a problem.

    The solve starts from the plan of the earlier answer at position `start` if the method supports
    warm starts and the plan is feasible for the copy.
    """

    def answer(copy: Problem, limit: float | None, earlier: Sequence[Any]) -> Result:
        chosen = choose(copy, method)
        plan = earlier[start].plan if earlier and chosen.supports_warm_start else None
        if plan is not None and copy.violations(plan):
            plan = None
        return solve(copy, chosen, time_limit=limit, warm_start=plan, **keywords)

    return answer
