"""The result of a solve: a plan, the judge's objective, a bound, and the reason of the stop."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic
from weakref import WeakValueDictionary

from specopt.models.errors import InvalidInput
from specopt.models.late import Picture, Shown
from specopt.models.problem import FORMAT, P, Plan, Problem


class Status(StrEnum):
    """Status of the plan."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NONE = "none"


class Termination(StrEnum):
    """Reason why the method stopped."""

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
        Field that sets the constraint.
    index
        Index of the task or client; None if the constraint applies to all together.
    needs
        Minimum requirement, in the field's unit.
    has
        Available amount, in the field's unit.
    least_change
        Nearest value of each field that makes this problem feasible if it alone is changed; empty
        if no such value is known.
    """

    constraint: str
    index: int | None = None
    needs: float
    has: float
    least_change: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the conflict as JSON-like data; without an index if that is None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


SOLVED: WeakValueDictionary[str, Problem] = WeakValueDictionary()
"""Solved problems that are still in memory are found here by their digest."""

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
        Objective of the best plan so far; None without a plan.
    bound
        Best bound so far; None without a bound.
    gap
        Gap between both; None without one of them.
    plan
        Best plan so far, judged; None without a plan.
    improvements
        Number of plans that were the best when they were found.
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
        Identity of the solved problem.
    problem_file
        Path of the problem's file, from the folder of the result's file; None if unknown.
    method
        Method that ran.
    options
        Options of the method.
    status
        Whether the plan is proven optimal, feasible, or absent (proven infeasible, or none found in
        time).
    termination
        Reason why the method stopped: the plan is proven optimal (`converged`) or within the
        requested gap (`gap`), or the problem is proven infeasible (`infeasible`). Without a proof,
        a limit was reached (`time_limit`, `work_limit`), the caller, a failed solver or missing
        memory stopped it (`interrupted`), or the method has finished and more time changes nothing
        (`exhausted`).
    plan
        Plan; None if absent.
    objective
        Objective computed by the judge; None without a plan.
    terms
        Parts of the objective; empty without a plan.
    bound
        Valid bound on the objective of every plan; None if the method has no bound.
    gap
        Relative distance of the objective from the bound; None if the method has no bound.
    seconds
        Time since the call of `solve`, including compilation.
    stats
        Counters of the method. For a portfolio, `members` that ran, and the members that found the
        plan (`plan_by`) and proved the bound (`bound_by`).
    explanation
        Reason, in the user's terms, why there is no plan; None otherwise.
    conflict
        Reason as data if the problem is infeasible.
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
    # None if absent; `Any` lets users compare and print without an assertion
    objective: float | Any = None
    bound: float | Any = None
    gap: float | Any = None
    seconds: float = 0.0
    plan: P | Any = (
        # or None: `Any` lets `solve(problem).plan.batch` pass type checkers; misspelt fields do not
        None
    )
    terms: dict[str, Any] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)
    explanation: str | None = None
    conflict: tuple[Conflict, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def by(self) -> str:
        """Method; for a portfolio, also the members that found the plan and the bound."""
        plan = self.stats.get("plan_by")
        bound = self.stats.get("bound_by")
        if plan is None and bound is None:
            return self.method
        return f"{self.method} ({plan if plan == bound else f'plan: {plan}, bound: {bound}'})"

    def row(self) -> dict[str, Any]:
        """Return the entries of the result in a table."""
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
        """The problem that was solved, if it is still in memory."""
        return SOLVED.get(self.problem_sha256)

    def plot(self) -> Picture:
        """Return a picture of the plan. A notebook shows it, `save` writes it.

        Raises
        ------
        InvalidInput
            If there is no plan, or if the problem is no longer in memory; `problem.plot(result)`
            draws it then.
        """
        if self.problem is None:
            raise InvalidInput(
                "plot: the problem of this result is not in memory; call problem.plot(result)"
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

    __hash__ = None  # type: ignore[assignment]  # mappings and arrays inside, as in plans
