"""The outcome of a solve: a plan, the judge's objective, a bound, and why it stopped."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Generic
from weakref import WeakValueDictionary

from specopt.models.errors import InvalidInput
from specopt.models.late import Picture, Shown
from specopt.models.problem import FORMAT, P, Plan, Problem


class Status(StrEnum):
    """What the plan is."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NONE = "none"


class Termination(StrEnum):
    """Why the method stopped."""

    CONVERGED = "converged"
    GAP = "gap"
    TIME_LIMIT = "time_limit"
    WORK_LIMIT = "work_limit"
    EXHAUSTED = "exhausted"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """A constraint that no plan meets.

    Parameters
    ----------
    constraint, index
        The field that sets it, and the task or client that it is of; None: of all together.
    needs, has
        What the least of its kind needs, and what there is, in the field's unit.
    least_change
        By field, the nearest value that, changed alone, leaves this problem a plan; empty where
        none is known.
    """

    constraint: str
    index: int | None = None
    needs: float
    has: float
    least_change: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the conflict as JSON-like data, without an index where it has none."""
        return {name: value for name, value in asdict(self).items() if value is not None}


SOLVED: WeakValueDictionary[str, Problem] = WeakValueDictionary()
"""The problems that were solved and are in memory, by their digest."""

GO_ON = (
    "the work allowed without a time limit is spent: a time limit of some minutes, or of inf,"
    " goes on"
)


@dataclass(frozen=True)
class Progress:
    """What a callback sees while a method runs.

    Parameters
    ----------
    seconds
        Time since the start of the solve.
    objective, bound, gap
        Of the best plan so far; None where there is none yet.
    plan
        The best plan so far, judged; None where there is none yet.
    improvements
        How many plans were the best when they were found.
    """

    seconds: float
    objective: float | None
    bound: float | None
    gap: float | None
    plan: Plan | None = field(default=None, repr=False)
    improvements: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(Shown, Generic[P]):
    """The outcome of `specopt.solve`.

    Parameters
    ----------
    kind, problem_sha256
        The problem that was solved: its kind and identity.
    method, options
        The method that ran, and its options.
    status
        Whether the plan is proven optimal, feasible, or absent (proven infeasible, or none found in
        time).
    termination
        Why the method stopped: the plan is proven (`converged`), or within the gap asked for
        (`gap`), or the problem is proven to have none (`infeasible`). Without a proof, a limit
        ended it (`time_limit`, `work_limit`), the caller, a failed solver or missing memory did
        (`interrupted`), or it has done all it does and more time changes nothing (`exhausted`).
    plan, objective, terms
        The plan, its objective as the judge computed it, and the parts of the objective. None and
        empty if absent.
    bound, gap
        A valid bound on every plan's objective, and the relative distance to it; None where the
        method has none.
    seconds
        Everything from the call of `solve` on, compilation included.
    stats
        Counters of the method; of a portfolio, `members` that ran, and which found the plan
        (`plan_by`) and proved the bound (`bound_by`).
    explanation
        In the user's terms, why there is no plan; None otherwise.
    conflict
        The same as data, where the problem is infeasible.
    versions
        Of specopt and the libraries that decide the outcome.
    """

    kind: str
    problem_sha256: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    status: Status
    termination: Termination
    # None where absent; `Any` lets users compare and print without asserting that it is not
    objective: float | Any = None
    bound: float | Any = None
    gap: float | Any = None
    seconds: float = 0.0
    plan: P | Any = (
        # or None: `Any` lets `solve(problem).plan.batch` pass type checkers, misspelt fields do not
        None
    )
    terms: dict[str, Any] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)
    explanation: str | None = None
    conflict: tuple[Conflict, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def by(self) -> str:
        """The method; of a portfolio, also which member found the plan and which the bound."""
        plan, bound = self.stats.get("plan_by"), self.stats.get("bound_by")
        if plan is None and bound is None:
            return self.method
        return f"{self.method} ({plan if plan == bound else f'plan: {plan}, bound: {bound}'})"

    def row(self) -> dict[str, Any]:
        """Return what a table says of the result."""
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
        """Return the picture of the plan: a notebook shows it, `save` writes it.

        Raises
        ------
        InvalidInput
            If there is no plan, or the problem is no longer in memory; `problem.plot(result)` draws
            it then.
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
            "kind": self.kind,
            "problem_sha256": self.problem_sha256,
            "method": self.method,
            "options": self.options,
            "status": self.status.value,
            "termination": self.termination.value,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "seconds": self.seconds,
            "plan": None if self.plan is None else self.plan.to_dict(),
            "terms": self.terms,
            "stats": self.stats,
            "explanation": self.explanation,
            "conflict": [one.to_dict() for one in self.conflict] or None,
            "versions": self.versions,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # mappings and arrays inside, as in plans
