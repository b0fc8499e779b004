"""Solve a Pyomo program by HiGHS within a budget: what every integer program that is written to be read needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specopt.models.result import Termination
from specopt.solvers.budget import Budget

TOLERANCE = 1e-6
"""The default of HiGHS, absolute: it looks for nothing that gains less, and a point may exceed rows by as much.
Programs are solved with more room than they state: that lets bounds hold, and points have to be judged."""


@dataclass(frozen=True, eq=False)
class SolvedProgram:
    """What HiGHS made of a program.

    Parameters
    ----------
    results
        As Pyomo reports them.
    bound
        On the objective, in the program's unit, beyond what HiGHS may overlook; None without a finite one.
    has_solution
        Whether there is a feasible point.
    termination
        Why HiGHS stopped.
    infeasible
        Whether it proved that there is no feasible point (or that the program is unbounded).
    """

    results: Any
    bound: float | None
    has_solution: bool
    termination: Termination
    infeasible: bool

    @property
    def nodes(self) -> int:
        """Nodes of the branch and bound."""
        return self.count("mip_node_count")

    def count(self, name: str) -> int:
        """Return a counter of HiGHS; 0 if it was done before it counted, as Pyomo then leaves it out."""
        return max(0, int(getattr(self.results.extra_info, name, 0)))

    def values(self, variables: Sequence[Any]) -> Mapping[Any, float]:
        """Return the values of variables at the feasible point."""
        found: Mapping[Any, float] = self.results.solution_loader.get_vars(list(variables))
        return found


def solve_program(
    program: Any, budget: Budget, tolerance: float = TOLERANCE, *, presolve: bool = True
) -> SolvedProgram:
    """Solve a program to the budget's gap, within its time; no exception where there is no solution.

    A tolerance below the default is for programs none of whose rows is met exactly: HiGHS loses such points with it.
    Its presolve loses feasible points where rows are met nearly, with any tolerance: it is for programs without such.
    """
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
    from pyomo.contrib.solver.solvers.highs import Highs
    from pyomo.environ import Objective, Var

    from specopt.solvers.highs import silent_highs

    of_duals = min(tolerance, 1e-7)  # by so much a reduced cost may have the wrong sign
    with silent_highs():
        results = Highs().solve(
            program,
            load_solutions=False,
            raise_exception_on_nonoptimal_result=False,
            time_limit=None if math.isinf(budget.remaining) else budget.remaining,
            rel_gap=budget.gap,
            abs_gap=0.0,
            solver_options={
                "presolve": "choose" if presolve else "off",
                "mip_feasibility_tolerance": tolerance,
                "primal_feasibility_tolerance": of_duals,
                "dual_feasibility_tolerance": of_duals,
                "random_seed": budget.seed % 2**31,
            },
        )
    condition, bound = results.termination_condition, results.objective_bound
    if bound is not None:
        binaries = sum(variable.is_binary() for variable in program.component_data_objects(Var))
        (objective,) = program.component_data_objects(Objective, active=True)
        bound -= objective.sense * (tolerance + of_duals * binaries)
    ended = {
        TerminationCondition.convergenceCriteriaSatisfied: Termination.CONVERGED,
        TerminationCondition.maxTimeLimit: Termination.TIME_LIMIT,
    }.get(condition, Termination.INTERRUPTED)
    return SolvedProgram(
        results=results,
        bound=bound if bound is not None and math.isfinite(bound) else None,
        has_solution=results.solution_status in (SolutionStatus.optimal, SolutionStatus.feasible),
        termination=ended,
        infeasible=condition in (TerminationCondition.provenInfeasible, TerminationCondition.infeasibleOrUnbounded),
    )
