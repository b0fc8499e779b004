"""Search for values of fixed fields that would give a better solution of a problem."""

from __future__ import annotations

import dataclasses
from typing import Any

from specopt.api.scan import scan
from specopt.api.solve import methods, solve
from specopt.kinds import kind_of
from specopt.models.problem import Problem
from specopt.models.result import Result
from specopt.solvers.method import Method

SHARE = 0.02
"""Share of the time limit that all alternative choices together may use."""

MAX_SECONDS = 1.0
"""Maximum time for all alternative choices together, in seconds."""


def solve_with_choices(
    problem: Problem,
    method: str | Method | None = None,
    *,
    time_limit: float | None = None,
    **keywords: Any,
) -> Result:
    """Solve a problem, and report in `stats` whether another choice of a fixed field is better.

    Each kind declares the alternative choices. Each alternative is solved with its default method,
    within a small share of the time limit, and is judged like any other problem. If one is better,
    the entry `unasked` of `stats` contains the fields to change, the method, and the objective of
    its plan.
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
