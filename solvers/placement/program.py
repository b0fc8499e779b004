"""Linear and integer maximisation programs that are built column by column and solved by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from specopt.models.fields import Floats
from specopt.models.result import Termination
from specopt.solvers.solver_status import termination_of

SECONDS_PER_PROGRAM, SECONDS_PER_STEP, SECONDS_PER_NODE = 1e-3, 1.3e-7, 1e-2
"""Estimated work in seconds per program, per simplex iteration and column, and per branch-and-bound
node.

An iteration takes as long as `OWN_COLUMNS` columns in addition to the program's columns. If the
constants are smaller, a solve without a time limit takes longer.
"""

OWN_COLUMNS = 500
"""Work of a simplex iteration that does not depend on the program, in columns.

If it is smaller, a solve without a time limit takes longer.
"""

TOLERANCE = 1e-9
"""Feasibility tolerance of HiGHS for rows and for reduced costs."""


@dataclass(frozen=True)
class Solution:
    """The solution of a program, as returned by HiGHS.

    Parameters
    ----------
    amounts
        Value of every column; None if no feasible point was found.
    duals
        Dual value of every row of a linear program.
    losses
        Reduced cost of every column of a linear program.
    value
        Objective value of the solution; -inf if no feasible point was found.
    bound
        Upper bound on the objective of all feasible points; -inf if the program is infeasible.
    work
        Work of the simplex iterations, in seconds at a fixed rate.
    """

    amounts: Floats | None
    duals: Floats
    losses: Floats
    value: float
    bound: float
    work: float


@dataclass
class Program:
    """A maximisation program with two-sided rows and nonnegative columns.

    Parameters
    ----------
    lower, upper
        Lower and upper bounds on the rows.
    costs
        Objective coefficient of every column.
    most
        Upper bound on the value of every column.
    whole
        Whether the value of each column must be an integer.
    columns
        Coefficients of every column, by row.
    """

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    columns: list[Mapping[int, float]] = field(default_factory=list)

    def rows(self, lower: Sequence[float], upper: Sequence[float]) -> range:
        """Add rows with the bounds `lower` and `upper`, and return their indices."""
        first = len(self.lower)
        self.lower += lower
        self.upper += upper
        return range(first, len(self.lower))

    def column(
        self, cost: float, held: Mapping[int, float], most: float = math.inf, whole: bool = False
    ) -> int:
        """Add a column with its objective and row coefficients, and return its index."""
        self.costs.append(cost)
        self.most.append(most)
        self.whole.append(whole)
        self.columns.append(held)
        return len(self.costs) - 1

    def solve(
        self,
        seconds: float = math.inf,
        gap: float = 0.0,
        unit: float = 1.0,
        presolve: bool = True,
        work: float = math.inf,
    ) -> Solution:
        """Solve the program with HiGHS and return its solution.

        The objective is divided by `unit`, because the tolerances of HiGHS are absolute. `presolve`
        enables presolving, except for integer programs with a time limit, because presolving may
        exceed the limit. `work` is a limit on branch-and-bound nodes, given in seconds and
        converted to nodes at a fixed rate.
        """
        import highspy

        from specopt.solvers.highs import Highs

        model, solver, kinds = highspy.HighsLp(), Highs(), highspy.HighsVarType
        model.num_col_, model.num_row_ = len(self.costs), len(self.lower)
        model.col_cost_, model.col_lower_ = np.array(self.costs) / unit, np.zeros(len(self.costs))
        model.col_upper_ = np.array(self.most)
        model.row_lower_, model.row_upper_ = np.array(self.lower), np.array(self.upper)
        model.sense_ = highspy.ObjSense.kMaximize
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.cumsum([0, *map(len, self.columns)])
        model.a_matrix_.index_ = np.array([row for held in self.columns for row in held], np.int32)
        model.a_matrix_.value_ = np.array(
            [value for held in self.columns for value in held.values()], np.float64
        )
        if any(self.whole):
            model.integrality_ = [
                kinds.kInteger if whole else kinds.kContinuous for whole in self.whole
            ]
        if not presolve or (any(self.whole) and seconds < math.inf):
            solver.setOptionValue("presolve", "off")
        for name, value in (
            ("mip_rel_gap", gap),
            ("mip_abs_gap", 0.0),
            ("mip_feasibility_tolerance", TOLERANCE),
            ("primal_feasibility_tolerance", TOLERANCE),
            ("dual_feasibility_tolerance", TOLERANCE),
            ("time_limit", max(0.01, seconds)),
        ):
            solver.setOptionValue(name, value)
        if math.isfinite(work):
            solver.setOptionValue("mip_max_nodes", max(0, int(work / SECONDS_PER_NODE)))
        solver.passModel(model)
        # Presolve and the dual simplex method may fail if coefficients differ by many orders of
        # magnitude.
        if solver.run() == highspy.HighsStatus.kError:
            solver.setOptionValue("presolve", "off")
            solver.setOptionValue("simplex_strategy", 4)
            solver.run()
        info, found = solver.getInfo(), solver.getSolution()
        ended = termination_of(solver.getModelStatus())
        value, bound = info.objective_function_value * unit, math.inf
        steps = max(0, info.simplex_iteration_count)
        work = SECONDS_PER_PROGRAM + SECONDS_PER_STEP * steps * (OWN_COLUMNS + len(self.costs))
        if ended is Termination.INFEASIBLE:
            bound = -math.inf
        elif any(self.whole) and ended is not Termination.INTERRUPTED:
            bound = info.mip_dual_bound * unit
        elif ended is Termination.CONVERGED:
            bound = value
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return Solution(None, np.zeros(0), np.zeros(0), -math.inf, bound, work)
        duals, losses = np.array(found.row_dual) * unit, -np.array(found.col_dual) * unit
        return Solution(np.array(found.col_value), duals, losses, value, bound, work)
