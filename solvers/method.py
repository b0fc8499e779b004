"""What a method is: a frozen value with typed options, and class data that says what it can do."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from specopt.models.fields import check
from specopt.models.problem import Plan, Problem
from specopt.models.result import Termination
from specopt.solvers.budget import Budget


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a method returns: its plan and bound, before the judge has seen them.

    Parameters
    ----------
    plan
        The plan, or None.
    bound
        A valid bound on the objective of every plan, or None.
    termination
        Why the method stopped.
    stats
        Counters worth showing.
    explanation
        Why there is no plan, in the user's terms.
    """

    plan: Plan | None
    bound: float | None = None
    termination: Termination = Termination.CONVERGED
    stats: dict[str, Any] = field(default_factory=dict)
    explanation: str | None = None

    @classmethod
    def infeasible(cls, explanation: str) -> Outcome:
        """Return the outcome of a problem that is proven to have no plan."""
        return cls(plan=None, termination=Termination.INFEASIBLE, explanation=explanation)


@dataclass(frozen=True)
class Method(ABC):
    """A way to solve one kind of problem; options are the fields of the subclass.

    Class data
    ----------
    name, solves
        The method's name and the problem class that it takes.
    exact
        Whether it proves its plan optimal when it has time enough.
    source, guarantee, complexity
        Where it comes from, what it promises, what it costs.
    supports_warm_start
        Whether it makes use of an earlier result. Every method honours the other keywords of `solve`.
    max_size
        Largest problem that it takes, or None.
    size_unit
        What `max_size` counts.
    tolerance
        Relative distance to the bound within which its result counts as optimal.
    requires
        Import names beyond the core dependencies.
    """

    name: ClassVar[str]
    solves: ClassVar[type[Problem]]
    exact: ClassVar[bool] = False
    source: ClassVar[str]
    guarantee: ClassVar[str]
    complexity: ClassVar[str]
    supports_warm_start: ClassVar[bool] = False
    max_size: ClassVar[int | None] = None
    size_unit: ClassVar[str] = "tasks"
    tolerance: ClassVar[float] = 1e-9
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, problem: Any) -> str | None:
        """Return why this method cannot take a problem of its kind, or None if it can."""
        return None

    @abstractmethod
    def run(self, problem: Any, budget: Budget) -> Outcome:
        """Solve within a budget.

        Raises
        ------
        OutOfTime, Stopped
            From the budget's checks; the best plan offered to the budget is then the result.
        """

    @property
    def options(self) -> dict[str, Any]:
        """The option values of this method."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
