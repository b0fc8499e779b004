"""The statuses of HiGHS, Pyomo and CVXPY, mapped to our terminations."""

from __future__ import annotations

from typing import Any

from specopt.models.result import Termination

MEANINGS = {
    Termination.CONVERGED: (
        "kOptimal",
        "kModelEmpty",
        "convergenceCriteriaSatisfied",
        "emptyModel",
        "optimal",
        "optimal_inaccurate",
    ),
    Termination.INFEASIBLE: (  # programs of ours are bounded
        "kInfeasible",
        "kUnboundedOrInfeasible",
        "provenInfeasible",
        "infeasibleOrUnbounded",
    ),
    Termination.TIME_LIMIT: ("kTimeLimit", "maxTimeLimit"),
    Termination.WORK_LIMIT: (
        "kIterationLimit",
        "kSolutionLimit",
        "kObjectiveBound",
        "kObjectiveTarget",
        "iterationLimit",
        "objectiveLimit",
        "user_limit",  # a limit of time, or of iterations
    ),
}
"""For each termination, the names of the statuses that mean it: of HiGHS (they begin with k), of
Pyomo, of CVXPY.

Every other status is `INTERRUPTED`: the solver was stopped or failed, and proves nothing; the best
plan so far is the result. So is "infeasible" of CVXPY: the programs that it gets have solutions,
and interior points prove nothing else.
"""


def termination_of(status: Any) -> Termination:
    """Return the meaning of a status: a member of `HighsModelStatus` or `TerminationCondition`, or
    a word of CVXPY.
    """
    name = getattr(status, "name", status)
    return next(
        (ended for ended, names in MEANINGS.items() if name in names), Termination.INTERRUPTED
    )
