"""Checks for any function that maps a problem to a plan.

The checks use random problems, the instance library, and relations that optimal values must
satisfy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from specopt.api.library import instances_of_kind
from specopt.api.solve import solve
from specopt.kinds import kind_of
from specopt.kinds.answers import NotConformant, Solver, is_better, planned
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput, MissingDependency
from specopt.models.files import save
from specopt.models.problem import Problem
from specopt.models.result import Status
from specopt.testing.relations import relations


def check_solver(
    solver: Solver,
    kind: str,
    *,
    exact: bool = False,
    examples: int = 50,
    sizes: Iterable[str] = ("small",),
    tolerance: float = 1e-9,
    seed: int = 0,
    folder: str | Path | None = ".",
    **shape: Any,
) -> None:
    """Check a function that solves problems of one kind.

    The check requires the extra `testing`.

    For every problem, the solver must return a feasible plan for that problem, leave the problem
    unchanged, and return the same plan again when the problem is solved again. No plan may be
    better than the proven bound, and a plan must be found if a feasible plan exists. If the solver
    is exact, its plans must also be optimal and satisfy all `relations`.

    Parameters
    ----------
    solver
        Function that maps a problem to a plan, its JSON form, a result, or None if no plan is
        feasible.
    kind
        Name of the kind of problems.
    exact
        Whether the solver claims that its plans are optimal.
    examples
        Number of random problems. A problem for which the check fails is shrunk to a small problem.
    sizes
        Size classes of library instances to check: "small", "paper", "large", "adversarial".
    tolerance
        Relative difference of objectives that is attributed to rounding.
    seed
        Seed of the random problems.
    folder
        Folder in which the problem of a failed check is saved; None to save nothing.
    shape
        Parameters for the kind's Hypothesis strategy for problems, such as `requests=(0, 5)`.

    Raises
    ------
    NotConformant
        If a guarantee is violated. The message names the file that reproduces the failure.
    InvalidInput
        If an argument is outside its domain.
    MissingDependency
        If Hypothesis is not installed.
    """
    tests = relations(kind) if exact else ()
    count = integer("examples", examples, 0)
    instances = instances_of_kind(kind_of(kind).name).values()
    names = list(dict.fromkeys(one.size for one in instances))
    if names and (unknown := [size for size in sizes if size not in names]):
        raise InvalidInput(f"sizes: expected one or more of {', '.join(names)}, got {unknown[0]!r}")

    def check(problem: Problem, luck: int = 0) -> None:
        check_problem(solver, problem, exact=exact, tolerance=tolerance)
        for relation in tests:
            relation.check(solver, problem, seed=luck, tolerance=tolerance)

    try:
        if count:
            _attempt(check, kind, count, integer("seed", seed, 0), shape)
        for one in instances:
            if one.size in sizes:
                check_problem(solver, one.load(), exact=exact, tolerance=tolerance)
    except NotConformant as broken:
        raise _kept(
            broken, getattr(solver, "__name__", type(solver).__name__), folder
        ) from broken.__cause__


def check_problem(
    solver: Solver, problem: Problem, *, exact: bool = False, tolerance: float = 1e-9
) -> None:
    """Check the result of a solver for one problem.

    Raises
    ------
    NotConformant
        If a guarantee is violated.
    """
    plan, best = planned(solver, problem), solve(problem)
    if planned(solver, problem) != plan:
        raise NotConformant("gives two answers to the same problem", problem)
    if plan is None:
        if best.plan is not None:
            raise NotConformant(
                f"finds no plan, although a plan with objective {best.objective!r} exists", problem
            )
        return
    if best.status is Status.INFEASIBLE:
        raise NotConformant("has a plan, although specopt proves that none exists", problem)
    found = problem.evaluate(plan).objective
    if best.bound is not None and is_better(problem, found, best.bound, max(tolerance, 1e-9)):
        raise NotConformant(
            f"has the objective {found!r}, beyond the proven bound {best.bound!r}", problem
        )
    if (
        exact
        and best.objective is not None
        and is_better(problem, best.objective, found, tolerance)
    ):
        raise NotConformant(
            f"claims that {found!r} is optimal, but the objective {best.objective!r} is possible",
            problem,
        )


def _attempt(
    check: Callable[[Problem, int], None],
    kind: str,
    examples: int,
    seed: int,
    shape: dict[str, Any],
) -> None:
    """Run a check on random problems.

    If a problem fails, it is shrunk, and the failure of the smallest failing problem is raised.
    """
    try:
        import hypothesis
        from hypothesis import strategies as st
    except ModuleNotFoundError:
        raise MissingDependency(
            "check_solver needs hypothesis; run pip install 'specopt[testing]'"
        ) from None
    from specopt.testing.strategies import problems

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(problems(kind, **shape), st.integers(0, 99))
    def attempt(problem: Problem, luck: int) -> None:
        check(problem, luck)

    attempt()


def _kept(broken: NotConformant, solver: str, folder: str | Path | None) -> NotConformant:
    """Save the problem of a failed check, and return the exception with the solver's name added."""
    problem = broken.problem
    if problem is None:
        return broken
    where = f" on {problem.name or problem.kind} ({problem.sha256[:8]})"
    if folder is not None:
        words = "-".join(re.findall(r"[a-z]+", str(broken).lower())[:4])
        path = Path(folder, f"{problem.kind}-{words}-{problem.sha256[:8]}.json")
        save(problem, path)
        where += f", saved as {path}"
    return NotConformant(f"{solver}{where}: {broken}", problem)
