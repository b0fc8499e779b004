"""Mapping of the statuses of HiGHS, Pyomo and CVXPY to the terminations of specopt."""

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
"""Names of the corresponding statuses of HiGHS (with the prefix k), Pyomo and CVXPY, by
termination.

Every other status maps to `INTERRUPTED`: the solver was stopped or failed, and has proven nothing,
so the result is the best plan so far. The status "infeasible" of CVXPY also maps to `INTERRUPTED`,
because all programs that are passed to CVXPY are feasible.
"""


def termination_of(status: Any) -> Termination:
    """Return the termination that corresponds to a status.

    The status is a member of `HighsModelStatus` or `TerminationCondition`, or a CVXPY status text.
    """
    name = getattr(status, "name", status)
    return next(
        (ended for ended, names in MEANINGS.items() if name in names), Termination.INTERRUPTED
    )
