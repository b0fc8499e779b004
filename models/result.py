"""Data types for the results of solves. A result contains a plan, the objective value computed by
the judge, a bound, and the reason why the method stopped.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic
from weakref import WeakValueDictionary

from specopt.models.errors import InvalidInput
from specopt.models.late import Picture, Shown
from specopt.models.problem import FORMAT, Compared, P, Plan, Problem


class Status(StrEnum):
    """Status of a solve: the plan is proven optimal or only feasible, the problem is proven
    infeasible, or no plan was found.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NONE = "none"


class Termination(StrEnum):
    """Reason why a method stopped. The values are explained in the documentation of `Result`."""

    CONVERGED = "converged"
    GAP = "gap"
    TIME_LIMIT = "time_limit"
    WORK_LIMIT = "work_limit"
    EXHAUSTED = "exhausted"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """A constraint that no plan satisfies, reported for an infeasible problem.

    Parameters
    ----------
    constraint
        Name of the constraint, which in most cases is the field that imposes the constraint.
    index
        Index of the task, client or client class, or None if the constraint applies to all of them
        together.
    needs
        Minimum amount that is required, in the field's unit.
    has
        Amount that is available, in the field's unit.
    least_change
        Mapping from the names of fields to values. Changing any one of these fields to its value
        makes the problem feasible, and no smaller change suffices. The mapping is empty if no such
        value is known.
    """

    constraint: str
    index: int | None = None
    needs: float
    has: float
    least_change: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the conflict as JSON-like data. The index is omitted if it is None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


SOLVED: WeakValueDictionary[str, Problem] = WeakValueDictionary()
"""Mapping from digests to the solved problems that are still in memory."""

GO_ON = (
    "the work limit that applies without a time limit was reached; to continue, set a time limit"
    " of some minutes, or inf"
)


@dataclass(frozen=True)
class Progress:
    """Progress of a running method. Callbacks receive an object of this class.

    Parameters
    ----------
    seconds
        Time since the start of the solve, in seconds.
    objective
        Objective value of the incumbent, or None if there is no incumbent.
    bound
        Best bound so far, or None if there is no bound.
    gap
        Relative gap between `objective` and `bound`, or None if either is missing.
    plan
        Incumbent, which is the best feasible plan so far, or None if there is none.
    improvements
        Number of times that a new incumbent has been found.
    """

    seconds: float
    objective: float | None
    bound: float | None
    gap: float | None
    plan: Plan | None = field(default=None, repr=False)
    improvements: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(Shown, Compared, Generic[P]):
    """The result that `specopt.solve` returns.

    Parameters
    ----------
    kind
        Kind of the solved problem.
    problem_sha256
        Digest of the solved problem.
    problem_file
        Path of the problem's file relative to the folder of the result's file, or None if it is not
        known.
    method
        Name of the method that solved the problem.
    options
        Options with which the method was called.
    status
        Status of the plan: proven optimal ("optimal") or feasible ("feasible"). Without a plan, the
        problem is proven infeasible ("infeasible") or no plan was found ("none").
    termination
        Reason why the method stopped. The method may have proven that the plan is optimal
        ("converged") or within the requested gap ("gap"), or that the problem is infeasible
        ("infeasible"). It may have reached a limit ("time_limit", "work_limit"), or more time would
        not have helped ("exhausted"). The caller, a solver failure or a lack of memory may also
        stop a method ("interrupted").
    plan
        Best plan that was found, or None if there is none.
    objective
        Objective value computed by the judge, or None if there is no plan.
    terms
        Parts of the objective value. The mapping is empty if there is no plan.
    bound
        Proven bound on the objective value of every plan, or None if the method has no bound.
    gap
        Relative distance between `objective` and `bound`, or None if the method has no bound.
    seconds
        Duration of the call to `solve` in seconds, including compilation.
    stats
        Statistics reported by the method. A portfolio reports the methods that ran (`members`), the
        method that found the plan (`plan_by`) and the method that proved the bound (`bound_by`).
    explanation
        Explanation for the user of why there is no plan, or None if there is a plan.
    conflict
        Constraints that cannot be satisfied, if the problem is infeasible.
    versions
        Versions of specopt and of the libraries that affect the result.
    """

    kind: str
    problem_sha256: str
    problem_file: str | None = None
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    status: Status
    termination: Termination
    # None if absent; `Any` allows users to compare and print values without an assertion
    objective: float | Any = None
    bound: float | Any = None
    gap: float | Any = None
    seconds: float = 0.0
    plan: P | Any = (
        # or None; with `Any`, type checkers accept `solve(problem).plan.batch`
        None
    )
    terms: dict[str, Any] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)
    explanation: str | None = None
    conflict: tuple[Conflict, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def by(self) -> str:
        """Name of the method. For a portfolio, the string also names the methods that found the
        plan and proved the bound.
        """
        plan = self.stats.get("plan_by")
        bound = self.stats.get("bound_by")
        if plan is None and bound is None:
            return self.method
        return f"{self.method} ({plan if plan == bound else f'plan: {plan}, bound: {bound}'})"

    def row(self) -> dict[str, Any]:
        """Return the main fields of the result as a mapping from names to values, for example for a
        table with one row per result.
        """
        names = (
            "kind",
            "method",
            "by",
            "status",
            "termination",
            "objective",
            "bound",
            "gap",
            "seconds",
        )
        return {name: getattr(self, name) for name in names}

    @property
    def problem(self) -> Problem | None:
        """The solved problem if it is still in memory, otherwise None."""
        return SOLVED.get(self.problem_sha256)

    def plot(self) -> Picture:
        """Return a chart of the plan.

        Notebooks display the chart, and the chart's `save` method writes it to a file.

        Raises
        ------
        InvalidInput
            If there is no plan, or if the problem is no longer in memory. In the second case, call
            `problem.plot(result)` instead.
        """
        if self.problem is None:
            raise InvalidInput(
                "plot: this result does not contain its problem; call problem.plot(result)"
            )
        return self.problem.plot(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-like data that `specopt.load` accepts in a file."""
        return {
            "format": FORMAT,
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "status": self.status.value,
            "termination": self.termination.value,
            "plan": None if self.plan is None else self.plan.to_dict(),
            "conflict": [one.to_dict() for one in self.conflict] or None,
        }
