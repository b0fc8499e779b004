"""How often each pattern is used: the integer program over patterns, solved by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.solvers.placement.patterns import Pattern, widest
from specopt.solvers.placement.prepare import Prepared

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Choice:
    """What HiGHS found.

    Parameters
    ----------
    used
        Patterns and units of each; None without a feasible choice.
    bound
        On the value of every choice, as something to maximise; -inf: there is none.
    """

    used: list[tuple[Pattern, int]] | None
    bound: float


def choose(
    prepared: Prepared, patterns: Sequence[Pattern], seconds: float, gap: float = 0.0, penalty: float = 0.0
) -> Choice:
    """Return the most valuable use of some patterns that places every client (for capacity: the most of each class).

    Parameters
    ----------
    prepared, patterns
        The problem, and patterns of its units with their values.
    seconds, gap
        Of HiGHS at most.
    penalty
        For every client that is left out or served twice; 0: none may be.
    """
    import highspy

    from specopt.solvers.highs import Highs

    problem, model = prepared.problem, highspy.HighsLp()
    drafts = sorted({draft for one in patterns for draft in one.drafted(prepared)})
    capacity = problem.objective == "capacity"
    spare = 2 * len(prepared.clients) if penalty and not capacity else 0
    columns = len(patterns) + len(drafts) + capacity + spare
    unit = max((abs(one.value) for one in patterns), default=0.0) or 1.0
    costs = np.zeros(columns)
    costs[: len(patterns)] = [one.value / unit for one in patterns]
    upper = np.full(columns, highspy.kHighsInf)
    for at, draft in enumerate(drafts, start=len(patterns)):
        pool = problem.draft_pools[prepared.drafts[draft].pool]
        price = {"cost": pool.price_per_second, "energy": pool.busy_watts}.get(problem.objective, 0.0)
        costs[at], upper[at] = -price / unit, pool.units
    if capacity:
        costs[-1] = unit = 1.0
    rows, lower, most = _rows(prepared, patterns, drafts, columns)
    for k in range(spare):
        costs[columns - spare + k] = -penalty / unit
        rows[k // 2][columns - spare + k] = 1.0 - 2.0 * (k % 2)
    model.num_col_, model.num_row_ = columns, len(rows)
    model.col_cost_, model.col_lower_, model.col_upper_ = costs, np.zeros(columns), upper
    model.row_lower_, model.row_upper_ = np.array(lower), np.array(most)
    model.sense_ = highspy.ObjSense.kMaximize
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *(len(row) for row in rows)])
    model.a_matrix_.index_ = np.array([column for row in rows for column in row], dtype=np.int32)
    model.a_matrix_.value_ = np.array([value for row in rows for value in row.values()], dtype=np.float64)
    whole = len(patterns) + len(drafts)
    free = [highspy.HighsVarType.kContinuous] * (columns - whole)
    model.integrality_ = [highspy.HighsVarType.kInteger] * whole + free
    solver = Highs()
    for name, value in (("mip_rel_gap", gap), ("mip_abs_gap", 0.0), ("mip_feasibility_tolerance", TOLERANCE),
                        ("primal_feasibility_tolerance", TOLERANCE), ("dual_feasibility_tolerance", TOLERANCE),
                        ("time_limit", seconds)):  # fmt: skip
        if math.isfinite(value):
            solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return Choice(None, -math.inf)
    bound = info.mip_dual_bound * unit
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Choice(None, bound)
    counts = np.rint(solver.getSolution().col_value[: len(patterns)]).astype(int).tolist()
    return Choice([(one, count) for one, count in zip(patterns, counts, strict=True) if count], bound)


def _rows(
    prepared: Prepared, patterns: Sequence[Pattern], drafts: list[int], columns: int
) -> tuple[list[dict[int, float]], list[float], list[float]]:
    """Return the rows of the program: clients, units, draft units, pools, and what types of draft units must hold."""
    problem, infinity = prepared.problem, math.inf
    capacity = problem.objective == "capacity"
    rows: list[dict[int, float]] = [{} for _ in prepared.clients]
    served = [one.served(prepared) for one in patterns]
    for column, counts in enumerate(served):
        for c, count in enumerate(counts):
            if count:
                rows[c][column] = count
    lower = [0.0 if capacity else float(count) for count in prepared.clients]
    upper = [infinity if capacity else float(count) for count in prepared.clients]
    if capacity:
        for c, count in enumerate(prepared.clients):
            rows[c][columns - 1] = -float(count)
    for v, verifier in enumerate(problem.verifiers):
        rows.append({k: 1.0 for k, one in enumerate(patterns) if prepared.sides[one.side].verifier == v})
        lower.append(0.0)
        upper.append(float(verifier.units))
    users = [one.drafted(prepared) for one in patterns]
    for at, draft in enumerate(drafts, start=len(patterns)):
        of = prepared.drafts[draft]
        held = {k: float(mine[draft]) for k, mine in enumerate(users) if draft in mine}
        rows.append(held | {at: -float(of.most)})
        units = float(problem.draft_pools[of.pool].units)
        for which in range(2 if of.context is not None else 0):  # somebody has the context and length of the type
            rows.append({k: -units for k in held if widest(prepared, patterns[k], draft)[which]} | {at: 1.0})
        lower += [-infinity] * (len(rows) - len(lower))
        upper += [0.0] * (len(rows) - len(upper))
    for p, pool in enumerate(problem.draft_pools):
        rows.append({at: 1.0 for at, d in enumerate(drafts, start=len(patterns)) if prepared.drafts[d].pool == p})
        lower.append(0.0)
        upper.append(float(pool.units))
    return rows, lower, upper
