"""Base classes for solution methods.

A method is a frozen dataclass whose fields are its options and whose class attributes describe its
capabilities.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from specopt.models.fields import check
from specopt.models.problem import Plan, Problem
from specopt.models.result import Conflict, Termination
from specopt.solvers.budget import MEMORY_LIMIT, Budget, shortage


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of running a method, before its plan is evaluated and its bound is checked.

    Parameters
    ----------
    plan
        Best plan, or None if no plan was found.
    bound
        Valid bound on the objective of every plan, or None if there is no bound.
    termination
        Reason why the method stopped. If no limit stopped the method, `solve` determines from the
        plan and the bound whether the method has converged or is exhausted.
    stats
        Statistics to report, by name.
    explanation
        Reason why there is no plan, in terms of the problem, or None.
    conflict
        Constraints that rule out every plan, in machine-readable form.
    """

    plan: Plan | None
    bound: float | None = None
    termination: Termination = Termination.CONVERGED
    stats: dict[str, Any] = field(default_factory=dict)
    explanation: str | None = None
    conflict: tuple[Conflict, ...] = ()

    @classmethod
    def of(cls, budget: Budget, **fields: Any) -> Self:
        """Build an outcome from the best plan and the best bound of a budget."""
        return cls(plan=budget.incumbent, bound=budget.bound, **fields)


@dataclass(frozen=True)
class Condition:
    """A requirement that a method places on problems.

    Parameters
    ----------
    takes
        Phrase that describes the accepted problems, such as "rates per round".
    clash
        Function of the method and the problem. It returns a phrase that describes the violation,
        such as "rates per second", or None if the problem satisfies the requirement.
    """

    takes: str
    clash: Callable[[Any, Any], str | None]


def only(field: str, value: Any, words: str) -> Condition:
    """Return a condition that a field of the problem has the value `value`.

    `words` is a format string that describes a value of the field, such as "rates per {}".
    """

    def clash(method: Any, problem: Any) -> str | None:
        found = getattr(problem, field)
        return None if found == value else words.format(found)

    return Condition(words.format(value), clash)


def at_most(limit: int, unit: str, count: Callable[[Any, Any], float], hint: str = "") -> Condition:
    """Return a condition requiring that the size of a problem not exceed a limit.

    Parameters
    ----------
    limit
        Maximum size.
    unit
        Unit of the size, as a plural noun.
    count
        Function of the method and the problem that returns the size. It may return infinity instead
        of a size above the limit.
    hint
        Advice on how to make the problem smaller, or an empty string.
    """

    def clash(method: Any, problem: Any) -> str | None:
        found = count(method, problem)
        if found <= limit:
            return None
        return f"more than {limit:,} {unit}" if found == math.inf else f"{found:,} {unit}"

    return Condition(f"at most {limit:,} {unit}" + (f" ({hint})" if hint else ""), clash)


@dataclass(frozen=True)
class Method(ABC):
    """Base class for methods, each of which solves problems of one kind.

    The fields of a subclass are the options of the method.

    Attributes
    ----------
    name
        Name of the method.
    solves
        Problem class that the method accepts.
    exact
        Whether the method proves optimality if it has enough time.
    may_fail
        Whether the method may fail to find a plan although one exists. If it fails, it explains
        why.
    source, guarantee, complexity
        Descriptions of the method's origin, its guarantee and its computational complexity.
    supports_warm_start
        Whether the method uses an initial plan. Every method supports all other keyword arguments
        of `solve`.
    takes
        Requirements that a problem must satisfy in addition to the size limit.
    max_size
        Maximum size of a problem, or None for no limit.
    size_unit
        Unit of the size that `size_of` returns, as a plural noun.
    size_hint
        Advice on how to make a problem smaller. It may be empty.
    bytes_per_number, bytes_per_part
        Memory in bytes that the method needs per number in the problem, and per unit of size.
    tolerance
        Relative gap within which a result is considered optimal.
    requires
        Import names of optional packages that the method requires.
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
        """Return the problem size that `max_size` limits.

        The result may be infinity if the exact size is not needed because it exceeds the limit.
        """
        raise NotImplementedError(f"{self.name}: a method with max_size must define size_of")

    @classmethod
    def conditions(cls) -> tuple[Condition, ...]:
        """Return all requirements that a problem must satisfy. They consist of the size limit, if
        there is one, and the conditions in `takes`.
        """
        if cls.max_size is None:
            return cls.takes
        return (at_most(cls.max_size, cls.size_unit, cls.size_of, cls.size_hint), *cls.takes)

    def bytes_needed(self, problem: Any) -> dict[str, float]:
        """Return the minimum memory that the method needs, as a dictionary that maps the fields
        that determine the amount to bytes.

        Memory whose amount depends on values in the problem is requested from `Budget.hold` during
        the run.
        """
        parts = (
            {self.size_unit: self.bytes_per_part * self.size_of(problem)}
            if self.bytes_per_part
            else {}
        )
        return {"all fields": self.bytes_per_number * problem.numbers} | parts

    def seconds_needed(self, problem: Any) -> dict[str, float]:
        """Return approximate lower bounds on the time during which the method cannot be
        interrupted.

        The result is a dictionary that maps the fields that determine the time to seconds.
        """
        return {}

    def refusal(self, problem: Any, memory_limit: float = MEMORY_LIMIT) -> str | None:
        """Return the reason why the method cannot solve a problem within a memory limit, or None if
        it accepts the problem.
        """
        for condition in self.conditions():
            clash = condition.clash(self, problem)
            if clash is not None:
                return f"it has {clash}, but the method accepts {condition.takes}"
        needs = self.bytes_needed(problem)
        return shortage(max(needs, key=needs.__getitem__), sum(needs.values()), memory_limit)

    @abstractmethod
    def run(self, problem: Any, budget: Budget) -> Outcome:
        """Solve a problem within the limits of a budget.

        Raises
        ------
        Infeasible
            If the method proves that no plan exists. The message states the reason.
        OutOfTime, Stopped
            If the time limit is reached or the caller requests a stop. The result of the solve is
            then the best plan recorded in the budget.
        """

    @property
    def options(self) -> dict[str, Any]:
        """Values of the options of this method, by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
