"""Functions that solve Pyomo programs within a budget, shared by the methods that formulate linear
or integer programs.
"""

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
"""Default absolute tolerance of HiGHS.

HiGHS ignores improvements smaller than this tolerance, and a solution may violate constraints by up
to the tolerance. Reported bounds account for this, but the feasibility of each solution must be
checked.
"""


@dataclass(frozen=True, eq=False)
class SolvedProgram:
    """The result of solving a Pyomo program.

    Parameters
    ----------
    results
        Results object that Pyomo returned.
    bound
        Bound on the program's objective, or None if there is no valid bound. The bound allows for
        improvements that the solver may overlook.
    has_solution
        Whether a feasible solution was found.
    termination
        Reason why the solver stopped. `INFEASIBLE` means that the solver has proven that no
        feasible solution exists.
    """

    results: Any
    bound: float | None
    has_solution: bool
    termination: Termination

    @property
    def nodes(self) -> int:
        """Number of branch-and-bound nodes that the solver explored."""
        return self.count("mip_node_count")

    def count(self, name: str) -> int:
        """Return the solver counter with the given name, or 0 if Pyomo does not report it.

        Pyomo omits the counters if a program is solved before the search starts.
        """
        return max(0, int(getattr(self.results.extra_info, name, 0)))

    def values(self) -> Mapping[Any, float]:
        """Return the values of all variables that occur in a constraint or in the objective."""
        found: Mapping[Any, float] = self.results.solution_loader.get_vars()
        return found


HIGHS = "highs"


@dataclass(frozen=True)
class ByProgram:
    """Base class for methods that formulate a program and pass it to a solver.

    Parameters
    ----------
    solver
        Name by which Pyomo knows the solver, such as "highs" or "scip_direct".
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
    """Solve a Pyomo program to the budget's gap, within the remaining time.

    No exception is raised if there is no solution. `solver` is a name known to Pyomo's solver
    factory, such as "scip_direct". Solver options are passed only to HiGHS.

    Use a tolerance below the default only if no feasible point satisfies any constraint with
    equality, because HiGHS may otherwise miss such points. Use presolve only if no feasible point
    comes close to equality in any constraint, because presolve may cut off such points at any
    tolerance.
    """
    from pyomo.contrib.solver.common.results import SolutionStatus
    from pyomo.environ import Objective, Var

    from specopt.solvers.highs import silent_highs

    of_duals = min(tolerance, 1e-7)  # amount by which a reduced cost may have the wrong sign
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
    """Return the Pyomo solver with the given name.

    Raises
    ------
    InvalidInput
        If Pyomo does not know the solver.
    MissingDependency
        If the solver is not installed or not licensed.
    """
    import pyomo.environ  # noqa: F401 - registers the solvers
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
    """Formulate a problem as a program, solve it, and record its plan and its bound in the budget.
    Return the outcome.
    """
    program = formulation.state(problem)
    budget.check()
    solved = solve_program(program, budget, tolerance, solver=solver)
    if solved.bound is not None:
        budget.improve_bound(solved.bound * program.unit + program.offset)
    if solved.has_solution:
        budget.offer(formulation.read(problem, program, solved.values().__getitem__))
    stats = {"nodes": solved.nodes}
    return Outcome.of(budget, termination=believed(solved, budget), stats=stats)


def believed(solved: SolvedProgram, budget: Budget) -> Termination:
    """Return the reason why the solver stopped, corrected for false reports of infeasibility.

    In the programs considered here, every plan is feasible. If the solver reports infeasibility
    although a plan is known, the solver has failed, and the result is `INTERRUPTED`.
    """
    lost = solved.termination is Termination.INFEASIBLE and budget.incumbent is not None
    return Termination.INTERRUPTED if lost else solved.termination
