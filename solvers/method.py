"""Methods: frozen dataclasses with typed options, and class attributes that describe their
abilities.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from specopt.models.fields import check
from specopt.models.problem import Plan, Problem
from specopt.models.result import Conflict, Termination
from specopt.solvers.budget import MEMORY_LIMIT, Budget, shortage


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a method, with its plan and bound before they are judged.

    Parameters
    ----------
    plan
        The plan, or None.
    bound
        A valid bound on the objective of every plan, or None.
    termination
        Why the method stopped. If it was not stopped, `solve` decides from plan and bound whether
        it has converged or is exhausted.
    stats
        Counters to report.
    explanation, conflict
        Why there is no plan, in the user's terms, and as data.
    """

    plan: Plan | None
    bound: float | None = None
    termination: Termination = Termination.CONVERGED
    stats: dict[str, Any] = field(default_factory=dict)
    explanation: str | None = None
    conflict: tuple[Conflict, ...] = ()


@dataclass(frozen=True)
class Condition:
    """A requirement of a method on a problem.

    Parameters
    ----------
    takes
        The accepted problems, in the user's terms, such as "rates per round".
    clash
        Given method and problem, what the problem has instead ("rates per second"), or None if it
        complies.
    """

    takes: str
    clash: Callable[[Any, Any], str | None]


def only(field: str, value: Any, words: str) -> Condition:
    """Return the condition that a field has one value; `words` name a value: "rates per {}"."""

    def clash(method: Any, problem: Any) -> str | None:
        found = getattr(problem, field)
        return None if found == value else words.format(found)

    return Condition(words.format(value), clash)


def at_most(limit: int, unit: str, count: Callable[[Any, Any], float], hint: str = "") -> Condition:
    """Return the condition that a problem does not exceed a size limit.

    Parameters
    ----------
    limit, unit
        The largest number, and its unit.
    count
        Given method and problem, the number; infinity where it is not worth counting on.
    hint
        How to make the problem smaller.
    """

    def clash(method: Any, problem: Any) -> str | None:
        found = count(method, problem)
        if found <= limit:
            return None
        return f"more than {limit:,} {unit}" if found == math.inf else f"{found:,} {unit}"

    return Condition(f"at most {limit:,} {unit}" + (f" ({hint})" if hint else ""), clash)


@dataclass(frozen=True)
class Method(ABC):
    """Base class of methods, which solve one kind of problem. Options are the fields of a subclass.

    Attributes
    ----------
    name, solves
        The method's name and the problem class that it takes.
    exact
        Whether it proves its plan optimal if it has enough time.
    may_fail
        Whether it may find no plan although one exists. It then explains why.
    source, guarantee, complexity
        Its origin, its guarantee and its cost.
    supports_warm_start
        Whether it makes use of an earlier result. Every method honours the other keywords of
        `solve`.
    takes
        Requirements on a problem in addition to its size.
    max_size, size_unit, size_hint
        Largest problem that it takes, or None; the unit that `size_of` counts; how to make a
        problem smaller, if there is a way.
    bytes_per_number, bytes_per_part
        Memory for each number of the problem, and for each unit of `size_of`.
    tolerance
        Relative distance to the bound within which its result counts as optimal.
    requires
        Import names beyond the core dependencies.
    """

    name: ClassVar[str]
    solves: ClassVar[type[Problem]]
    exact: ClassVar[bool] = False
    may_fail: ClassVar[bool] = False
    source: ClassVar[str]
    guarantee: ClassVar[str]
    complexity: ClassVar[str]
    supports_warm_start: ClassVar[bool] = False
    takes: ClassVar[tuple[Condition, ...]] = ()
    max_size: ClassVar[int | None] = None
    size_unit: ClassVar[str] = "parts"
    size_hint: ClassVar[str] = ""
    bytes_per_number: ClassVar[float] = 128.0
    bytes_per_part: ClassVar[float] = 0.0
    tolerance: ClassVar[float] = 1e-9
    requires: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check(self)

    def size_of(self, problem: Any) -> float:
        """Return the size that `max_size` limits; infinity where it is beyond that and not worth
        counting on.
        """
        raise NotImplementedError(f"{self.name}: a method with max_size must define size_of")

    @classmethod
    def conditions(cls) -> tuple[Condition, ...]:
        """Return all requirements of this method on a problem, which are its size limit and
        `takes`.
        """
        if cls.max_size is None:
            return cls.takes
        return (at_most(cls.max_size, cls.size_unit, cls.size_of, cls.size_hint), *cls.takes)

    def bytes_needed(self, problem: Any) -> dict[str, float]:
        """Return the minimum bytes that the method needs, by the fields that determine them.

        Memory that depends on the values is requested from `Budget.hold` during the run.
        """
        parts = (
            {self.size_unit: self.bytes_per_part * self.size_of(problem)}
            if self.bytes_per_part
            else {}
        )
        return {"all fields": self.bytes_per_number * problem.numbers} | parts

    def seconds_needed(self, problem: Any) -> dict[str, float]:
        """Return the approximate minimum seconds that the method takes without interruption, by the
        fields that determine them.
        """
        return {}

    def refusal(self, problem: Any, memory_limit: float = MEMORY_LIMIT) -> str | None:
        """Return why this method cannot solve a problem of its kind within a memory limit, or None
        if it can.
        """
        for condition in self.conditions():
            clash = condition.clash(self, problem)
            if clash is not None:
                return f"it has {clash}, but the method accepts {condition.takes}"
        needs = self.bytes_needed(problem)
        return shortage(max(needs, key=needs.__getitem__), sum(needs.values()), memory_limit)

    @abstractmethod
    def run(self, problem: Any, budget: Budget) -> Outcome:
        """Solve within a budget.

        Raises
        ------
        Infeasible
            If the problem is proven to have no plan; the message says why.
        OutOfTime, Stopped
            From the budget's checks; the best plan offered to the budget is then the result.
        """

    @property
    def options(self) -> dict[str, Any]:
        """The option values of this method."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
