"""Mapping from the solver statuses of HiGHS, Pyomo and CVXPY to the reasons for termination that
specopt reports.
"""

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
    Termination.INFEASIBLE: (  # the programs of specopt are bounded
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
        "user_limit",  # a time limit or an iteration limit
    ),
}
"""Names of the solver statuses that correspond to each reason for termination. Names of HiGHS
statuses start with k, and the other names are statuses of Pyomo and CVXPY.

Every other status maps to `INTERRUPTED`, which means that the solver was stopped or failed without
proving anything. The result is then the best plan so far. The status "infeasible" of CVXPY also
maps to `INTERRUPTED`, because all programs that are passed to CVXPY are feasible.
"""


def termination_of(status: Any) -> Termination:
    """Return the reason for termination that corresponds to a solver status.

    The status is a member of `HighsModelStatus` or `TerminationCondition`, or a CVXPY status
    string.
    """
    name = getattr(status, "name", status)
    return next(
        (ended for ended, names in MEANINGS.items() if name in names), Termination.INTERRUPTED
    )
