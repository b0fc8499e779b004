"""The statuses of HiGHS, Pyomo and CVXPY: each means one of our terminations, for all who call these solvers."""

from __future__ import annotations

from typing import Any

from specopt.models.result import Termination

MEANINGS = {
    Termination.CONVERGED: (
        "kOptimal", "kModelEmpty",
        "convergenceCriteriaSatisfied", "emptyModel",
        "optimal", "optimal_inaccurate",
    ),
    Termination.INFEASIBLE: (  # programs of ours are bounded
        "kInfeasible", "kUnboundedOrInfeasible",
        "provenInfeasible", "infeasibleOrUnbounded",
        "infeasible", "infeasible_or_unbounded",
    ),
    Termination.TIME_LIMIT: ("kTimeLimit", "maxTimeLimit"),
    Termination.WORK_LIMIT: (
        "kIterationLimit", "kSolutionLimit", "kObjectiveBound", "kObjectiveTarget",
        "iterationLimit", "objectiveLimit",
        "user_limit",  # a limit of time, or of iterations
    ),
    Termination.INTERRUPTED: (
        "kInterrupt", "kHighsInterrupt", "kMemoryLimit", "kUnbounded", "kUnknown",
        "kNotset", "kLoadError", "kModelError", "kPresolveError", "kSolveError", "kPostsolveError",
        "interrupted", "unbounded", "locallyInfeasible", "minStepLength", "error", "licensingProblems", "unknown",
        "unbounded_inaccurate", "infeasible_inaccurate", "solver_error",
    ),
}  # fmt: skip
"""For each termination, the names of the statuses that mean it: of HiGHS (they begin with k), of Pyomo, of CVXPY.

`INTERRUPTED` stands for a solver that failed, too: its result proves nothing, and the best plan so far is the result.
"""


def termination_of(status: Any) -> Termination:
    """Return what a status means: a member of `HighsModelStatus` or `TerminationCondition`, or a word of CVXPY."""
    name = getattr(status, "name", status)
    return next((ended for ended, names in MEANINGS.items() if name in names), Termination.INTERRUPTED)


def failure_of(status: Any) -> Termination:
    """Return why a program that has solutions was not solved: there are some, whatever the solver says."""
    ended = termination_of(status)
    return Termination.INTERRUPTED if ended is Termination.INFEASIBLE else ended
