"""The result of a solve: a plan, the objective computed by the judge, a bound, and the reason why
the method stopped.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic
from weakref import WeakValueDictionary

from specopt.models.errors import InvalidInput
from specopt.models.late import Picture, Shown
from specopt.models.problem import FORMAT, P, Plan, Problem


class Status(StrEnum):
    """Status of a result's plan: proven optimal, feasible, proven not to exist, or not found."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NONE = "none"


class Termination(StrEnum):
    """Reason why a method stopped; `Result` documents the values."""

    CONVERGED = "converged"
    GAP = "gap"
    TIME_LIMIT = "time_limit"
    WORK_LIMIT = "work_limit"
    EXHAUSTED = "exhausted"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """A constraint that no plan satisfies.

    Parameters
    ----------
    constraint
        Name of the field that imposes the constraint.
    index
        Index of the task or client; None if the constraint applies to all tasks or clients
        together.
    needs
        Minimum amount that is required, in the field's unit.
    has
        Amount that is available, in the field's unit.
    least_change
        Mapping from a field to the closest value that makes the problem feasible if only this field
        is changed; empty if no such value is known.
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
"""Solved problems that are still in memory, by their digest."""

GO_ON = (
    "the work limit that applies without a time limit was reached; to continue, set a time limit"
    " of some minutes, or inf"
)


@dataclass(frozen=True)
class Progress:
    """Progress of a running method, as passed to a callback.

    Parameters
    ----------
    seconds
        Time since the start of the solve.
    objective
        Objective of the best plan so far; None if there is no plan.
    bound
        Best bound so far; None if there is no bound.
    gap
        Gap between the objective and the bound; None if either is missing.
    plan
        Best plan so far, which the judge has accepted; None if there is no plan.
    improvements
        Number of times so far that a new best plan was found.
    """

    seconds: float
    objective: float | None
    bound: float | None
    gap: float | None
    plan: Plan | None = field(default=None, repr=False)
    improvements: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(Shown, Generic[P]):
    """The result of `specopt.solve`.

    Parameters
    ----------
    kind
        Kind of the solved problem.
    problem_sha256
        Digest of the solved problem.
    problem_file
        Path of the problem's file, relative to the folder of the result's file; None if unknown.
    method
        Name of the method.
    options
        Options of the method.
    status
        Whether the plan is proven optimal ("optimal"), feasible ("feasible") or absent. The plan is
        absent if the problem is proven infeasible ("infeasible") or no plan was found ("none").
    termination
        Reason why the method stopped. With a proof, the plan is optimal (`converged`) or within the
        requested gap (`gap`), or the problem is infeasible (`infeasible`). Without a proof, the
        method reached a limit (`time_limit`, `work_limit`), or more time would not have helped
        (`exhausted`). The caller, a solver failure or a lack of memory may also stop a method
        (`interrupted`).
    plan
        Plan; None if there is no plan.
    objective
        Objective computed by the judge; None if there is no plan.
    terms
        Parts of the objective; empty if there is no plan.
    bound
        Valid bound on the objective of every plan; None if the method has no bound.
    gap
        Relative distance between the objective and the bound; None if the method has no bound.
    seconds
        Duration of the call to `solve`, including compilation.
    stats
        Statistics reported by the method. A portfolio reports the methods that ran (`members`), the
        method that found the plan (`plan_by`) and the method that proved the bound (`bound_by`).
    explanation
        Reason why there is no plan, worded for the user; None if there is a plan.
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
        """Name of the method. For a portfolio, the text also contains the methods that found the
        plan and the bound.
        """
        plan = self.stats.get("plan_by")
        bound = self.stats.get("bound_by")
        if plan is None and bound is None:
            return self.method
        return f"{self.method} ({plan if plan == bound else f'plan: {plan}, bound: {bound}'})"

    def row(self) -> dict[str, Any]:
        """Return the result as a row of a table: a mapping from column names to values."""
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
        """Return a picture of the plan. Notebooks display the picture, and the picture's `save`
        method writes a file.

        Raises
        ------
        InvalidInput
            If there is no plan, or if the problem is no longer in memory. If only the problem is
            missing, use `problem.plot(result)`.
        """
        if self.problem is None:
            raise InvalidInput(
                "plot: this result does not contain its problem; call problem.plot(result)"
            )
        return self.problem.plot(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-like data."""
        return {
            "format": FORMAT,
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "status": self.status.value,
            "termination": self.termination.value,
            "plan": None if self.plan is None else self.plan.to_dict(),
            "conflict": [one.to_dict() for one in self.conflict] or None,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # contains mappings and arrays, as plans do
