"""Base classes of methods.

A method is a frozen dataclass whose fields are its options. Its class attributes describe its
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
    """The result of a method, with a plan and a bound that have not been judged yet.

    Parameters
    ----------
    plan
        Plan, or None if no plan was found.
    bound
        Valid bound on the objective of every plan, or None.
    termination
        Reason why the method stopped. If no limit stopped the method, `solve` determines from the
        plan and the bound whether the method has converged or is exhausted.
    stats
        Statistics to report, by name.
    explanation
        Reason why there is no plan, stated in terms of the problem.
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
        """Return the outcome with the best plan and the best bound of a budget."""
        return cls(plan=budget.incumbent, bound=budget.bound, **fields)


@dataclass(frozen=True)
class Condition:
    """A requirement that a method places on problems.

    Parameters
    ----------
    takes
        Description of the accepted problems, such as "rates per round".
    clash
        Function of the method and the problem that describes the violation, such as "rates per
        second", or returns None if the problem satisfies the requirement.
    """

    takes: str
    clash: Callable[[Any, Any], str | None]


def only(field: str, value: Any, words: str) -> Condition:
    """Return the condition that a field of the problem has a given value.

    `words` is a format string that describes a value, such as "rates per {}".
    """

    def clash(method: Any, problem: Any) -> str | None:
        found = getattr(problem, field)
        return None if found == value else words.format(found)

    return Condition(words.format(value), clash)


def at_most(limit: int, unit: str, count: Callable[[Any, Any], float], hint: str = "") -> Condition:
    """Return the condition that a problem does not exceed a size limit.

    Parameters
    ----------
    limit
        Maximum size.
    unit
        Unit of the size, as a plural noun.
    count
        Function of the method and the problem that returns the size, or infinity if it stops
        counting above the limit.
    hint
        Advice on how to make the problem smaller.
    """

    def clash(method: Any, problem: Any) -> str | None:
        found = count(method, problem)
        if found <= limit:
            return None
        return f"more than {limit:,} {unit}" if found == math.inf else f"{found:,} {unit}"

    return Condition(f"at most {limit:,} {unit}" + (f" ({hint})" if hint else ""), clash)


@dataclass(frozen=True)
class Method(ABC):
    """Base class of methods, each of which solves problems of one kind.

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
        Whether the method may find no plan although a plan exists; in that case, the method
        explains why.
    source, guarantee, complexity
        Texts that describe the origin, the guarantee and the computational cost of the method.
    supports_warm_start
        Whether the method uses an initial plan. All other keywords of `solve` are supported by
        every method.
    takes
        Requirements on a problem in addition to the size limit.
    max_size
        Maximum size of a problem, or None.
    size_unit
        Unit in which `size_of` counts, as a plural noun.
    size_hint
        Advice on how to make a problem smaller; may be empty.
    bytes_per_number, bytes_per_part
        Memory in bytes per number in the problem, and per unit of `size_of`.
    tolerance
        Relative gap within which a result is considered optimal.
    requires
        Import names of the required optional packages.
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
        """Return the size that `max_size` limits, or infinity if counting stops above the limit."""
        raise NotImplementedError(f"{self.name}: a method with max_size must define size_of")

    @classmethod
    def conditions(cls) -> tuple[Condition, ...]:
        """Return all requirements on a problem: the size limit, if any, and `takes`."""
        if cls.max_size is None:
            return cls.takes
        return (at_most(cls.max_size, cls.size_unit, cls.size_of, cls.size_hint), *cls.takes)

    def bytes_needed(self, problem: Any) -> dict[str, float]:
        """Return the minimum memory that the method needs, in bytes, by the fields that determine
        it.

        Memory that depends on the values of the problem is requested from `Budget.hold` during the
        run.
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

        The bounds are in seconds, by the fields that determine them.
        """
        return {}

    def refusal(self, problem: Any, memory_limit: float = MEMORY_LIMIT) -> str | None:
        """Return the reason why the method cannot solve a problem within a memory limit.

        The result is None if the method accepts the problem.
        """
        for condition in self.conditions():
            clash = condition.clash(self, problem)
            if clash is not None:
                return f"it has {clash}, but the method accepts {condition.takes}"
        needs = self.bytes_needed(problem)
        return shortage(max(needs, key=needs.__getitem__), sum(needs.values()), memory_limit)

    @abstractmethod
    def run(self, problem: Any, budget: Budget) -> Outcome:
        """Solve a problem within a budget.

        Raises
        ------
        Infeasible
            If the method proves that no plan exists; the message contains the reason.
        OutOfTime, Stopped
            If a check of the budget fails. The result is then the best plan that was offered to the
            budget.
        """

    @property
    def options(self) -> dict[str, Any]:
        """Values of the options of this method, by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
