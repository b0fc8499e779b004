"""Solve a Pyomo program with HiGHS within a budget. All readable integer programs use it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from specopt.models.errors import InvalidInput, MissingDependency
from specopt.models.problem import Problem
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.formulation import Formulation
from specopt.solvers.method import Outcome
from specopt.solvers.solver_status import termination_of

TOLERANCE = 1e-6
"""The default of HiGHS, absolute: it looks for nothing that gains less, and a point may exceed rows
by as much. Programs are solved with more room than they state: that lets bounds hold, and points
have to be judged."""


@dataclass(frozen=True, eq=False)
class SolvedProgram:
    """The solution of a program by HiGHS.

    Parameters
    ----------
    results
        As Pyomo reports them.
    bound
        On the objective, in the program's unit, beyond the amount that HiGHS may overlook; None
        without a finite one.
    has_solution
        Whether a feasible point was found.
    termination
        Why HiGHS stopped; `INFEASIBLE`: it proved that there is no feasible point.
    """

    results: Any
    bound: float | None
    has_solution: bool
    termination: Termination

    @property
    def nodes(self) -> int:
        """Nodes of the branch and bound."""
        return self.count("mip_node_count")

    def count(self, name: str) -> int:
        """Return a counter of HiGHS; 0 if it was done before it counted, as Pyomo then leaves it
        out.
        """
        return max(0, int(getattr(self.results.extra_info, name, 0)))

    def values(self) -> Mapping[Any, float]:
        """Return the values at the feasible point, of the variables that rows and objective
        have.
        """
        found: Mapping[Any, float] = self.results.solution_loader.get_vars()
        return found


HIGHS = "highs"


@dataclass(frozen=True)
class ByProgram:
    """Base of the methods that state a program and pass it to a solver.

    Parameters
    ----------
    solver
        Name of the solver in Pyomo, such as "highs" or "scip_direct".
    """

    solver: str = HIGHS

    exact: ClassVar[bool] = True
    guarantee: ClassVar[str] = "optimal, to 1e-6"
    tolerance: ClassVar[float] = TOLERANCE


def solve_program(
    program: Any,
    budget: Budget,
    tolerance: float = TOLERANCE,
    *,
    presolve: bool = True,
    solver: str = HIGHS,
) -> SolvedProgram:
    """Solve a program to the budget's gap within its time. No exception is raised if there is no
    solution.

    `solver` is a name that Pyomo's own factory knows, as "scip_direct"; options are given to HiGHS
    alone.

    A tolerance below the default is for programs none of whose rows is met exactly: HiGHS loses
    such points with it. Its presolve loses feasible points where rows are met nearly, with any
    tolerance: it is for programs without such.
    """
    from pyomo.contrib.solver.common.results import SolutionStatus
    from pyomo.environ import Objective, Var

    from specopt.solvers.highs import silent_highs

    of_duals = min(tolerance, 1e-7)  # by so much a reduced cost may have the wrong sign
    options = {
        "presolve": "choose" if presolve else "off",
        "mip_feasibility_tolerance": tolerance,
        "primal_feasibility_tolerance": of_duals,
        "dual_feasibility_tolerance": of_duals,
        "random_seed": budget.seed % 2**31,
    }
    with silent_highs():
        results = _solver(solver).solve(
            program,
            load_solutions=False,
            raise_exception_on_nonoptimal_result=False,
            time_limit=None if math.isinf(budget.remaining) else budget.remaining,
            rel_gap=budget.gap,
            abs_gap=0.0,
            solver_options=options if solver == HIGHS else {},
        )
    ended, bound = termination_of(results.termination_condition), results.objective_bound
    tolerance = tolerance if solver == HIGHS else TOLERANCE
    if bound is not None:
        binaries = sum(variable.is_binary() for variable in program.component_data_objects(Var))
        (objective,) = program.component_data_objects(Objective, active=True)
        bound -= objective.sense * (tolerance + of_duals * binaries)
    is_valid = bound is not None and math.isfinite(bound) and ended is not Termination.INTERRUPTED
    return SolvedProgram(
        results=results,
        bound=bound if is_valid else None,
        has_solution=results.solution_status in (SolutionStatus.optimal, SolutionStatus.feasible),
        termination=ended,
    )


def _solver(name: str) -> Any:
    """Return a solver of Pyomo.

    Raises
    ------
    InvalidInput
        If Pyomo knows no such solver.
    MissingDependency
        If it is not installed.
    """
    import pyomo.environ  # noqa: F401 - fills the factory
    from pyomo.contrib.solver.common.factory import SolverFactory

    if name not in SolverFactory:
        raise InvalidInput(
            f"solver: expected one of {', '.join(sorted(SolverFactory))}, got {name!r}"
        )
    found = SolverFactory(name)
    if not found.available():
        raise MissingDependency(
            f"solver: {name} is not installed or not licensed; install it, or use 'highs'"
        )
    return found


def run_program(
    problem: Problem,
    formulation: Formulation,
    budget: Budget,
    tolerance: float = TOLERANCE,
    *,
    solver: str = HIGHS,
) -> Outcome:
    """State a problem, solve the program, offer its plan, and return the bound of the program."""
    program = formulation.state(problem)
    budget.check()
    solved = solve_program(program, budget, tolerance, solver=solver)
    if solved.bound is not None:
        budget.improve_bound(solved.bound * program.unit + program.offset)
    if solved.has_solution:
        budget.offer(formulation.read(problem, program, solved.values().__getitem__))
    stats = {"nodes": solved.nodes}
    return Outcome(
        plan=budget.incumbent, bound=budget.bound, termination=believed(solved, budget), stats=stats
    )


def believed(solved: SolvedProgram, budget: Budget) -> Termination:
    """Return why a program that every plan meets ended: a solver that denies a known plan has
    failed.
    """
    lost = solved.termination is Termination.INFEASIBLE and budget.incumbent is not None
    return Termination.INTERRUPTED if lost else solved.termination
