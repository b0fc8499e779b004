"""Relations between the optimum of a problem and that of a modified copy, and functions that modify
problems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from specopt.kinds.answers import NotConformant, Solver, is_better, judged
from specopt.models.errors import InvalidInput
from specopt.models.problem import Problem

Data = dict[str, Any]
Change = Callable[[Data, Random], Data | None]


def unchanged(problem: Any, objective: float) -> float:
    """Return the objective as it is, for changes that do not alter the optimum."""
    return objective


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A relation between the optimum of a problem and the optimum of a modified copy.

    Parameters
    ----------
    kind
        Kind of the problem.
    name
        Name of the change.
    when
        Condition under which the relation holds.
    reason
        Reason why the relation holds.
    change
        Function of the JSON form of a problem and a source of random numbers. The function
        returns the JSON form of the changed problem, or None if the condition does not hold.
    implied
        Function of a problem and its optimum that returns an objective. The optimum of the
        changed problem is at least as good as this objective.
    equal
        Whether the optimum of the changed problem equals this objective.
    """

    kind: str
    name: str
    when: str = "always"
    reason: str
    change: Change
    implied: Callable[[Any, float], float] = unchanged
    equal: bool = False

    def changed(self, problem: Problem, seed: int = 0) -> Problem | None:
        """Return the changed problem, or None if the condition does not hold."""
        data = self.change(problem.to_dict(), Random(seed))
        return None if data is None else type(problem).from_dict(data)

    def check(
        self, solver: Solver, problem: Problem, *, seed: int = 0, tolerance: float = 1e-9
    ) -> bool:
        """Check the relation on a problem, using a solver that claims optimality.

        Return True if the relation applies to the problem, and False if it does not.

        Parameters
        ----------
        solver
            Function that maps a problem to a plan or a result.
        problem
            Problem to change.
        seed
            Seed of the random change.
        tolerance
            Relative difference of objectives that is attributed to rounding.

        Raises
        ------
        NotConformant
            If the two answers contradict the relation.
        InvalidInput
            If the problem is of another kind.
        """
        if problem.kind != self.kind:
            raise InvalidInput(f"problem: expected a {self.kind} problem, got {problem.kind}")
        other = self.changed(problem, seed)
        if other is None:
            return False
        first = judged(solver, problem)
        if first is None and not self.equal:
            return True
        second = judged(solver, other)
        defect = ""
        if first is None or second is None:
            if first is not second:
                before, after = ("no plan" if one is None else one for one in (first, second))
                defect = f"finds {before}, but after the change {after}"
        else:
            implied = self.implied(problem, first)
            ahead = self.equal and is_better(other, second, implied, tolerance)
            if ahead or is_better(other, implied, second, tolerance):
                relaxed = "at most" if problem.sense == "minimize" else "at least"
                how = "exactly" if self.equal else relaxed
                defect = (
                    f"reaches {first!r}, which implies {how} {implied!r} after the change, but"
                    f" reaches {second!r}"
                )
        if defect:
            raise NotConformant(f"relation {self.name!r} ({self.reason}): {defect}", problem)
        return True


RELAXED = "every plan stays feasible"
NAMES = "the objective does not depend on the order"
UNITS = "every time is twice as long"


def relations_of(problem: type[Problem]) -> Callable[..., Relation]:
    """Return a function that declares a relation from its name, reason, change and keywords."""

    def declared(name: str, reason: str, change: Change, **more: Any) -> Relation:
        return Relation(kind=problem.kind, name=name, reason=reason, change=change, **more)

    return declared


def times(factor: float) -> Callable[[Problem, float], float]:
    """Return a function that multiplies an objective by a factor."""
    return lambda problem, objective: factor * objective


def permuted(*columns: str) -> Change:
    """Return a change that permutes several columns in the same way.

    The first column must exist.
    """

    def change(data: Data, random: Random) -> Data:
        order = shuffled(data[columns[0]], random)
        found = {
            name: [data[name][i] for i in order]
            for name in columns
            if isinstance(data.get(name), list)
        }
        if samples := data.get("output_samples"):
            found["output_samples"] = [[row[i] for i in order] for row in samples]
        return data | found

    return change


def shuffled(column: Sequence[Any], random: Random) -> list[int]:
    """Return the positions of a column's entries in random order."""
    return random.sample(range(len(column)), len(column))


def scaled(factors: Mapping[str, float]) -> Change:
    """Return a change that multiplies all numbers in the given fields by factors.

    A nested field may have a factor of its own.
    """

    def times(value: Any, factor: float) -> Any:
        if isinstance(value, dict):
            return {name: times(inner, factors.get(name, factor)) for name, inner in value.items()}
        if isinstance(value, list):
            return [times(inner, factor) for inner in value]
        return value * factor if factor != 1.0 and isinstance(value, int | float) else value

    return lambda data, random: {
        name: times(value, factors.get(name, 1.0)) for name, value in data.items()
    }


def raised(
    field: str, change: Callable[[Any], Any], unless: Callable[[Data], bool] = lambda data: False
) -> Change:
    """Return a change that applies a function to a field, or to every entry if the field is a list.

    The change does not apply if the field is missing or `unless` returns True.
    """

    def raised(data: Data, random: Random) -> Data | None:
        value = data.get(field)
        if value is None or unless(data):
            return None
        return data | {field: [*map(change, value)] if isinstance(value, list) else change(value)}

    return raised


def one_more(field: str) -> Change:
    """Return a change that adds one to a field, or to every entry if the field is a list."""
    return raised(field, lambda count: count + 1)


def replaced(field: str, to: Any, among: Sequence[Any] | None = None) -> Change:
    """Return a change that sets a field to a value if the current value is in `among`.

    If `among` is None, the change applies whenever the field is present.
    """

    def change(data: Data, random: Random) -> Data | None:
        if (field not in data) if among is None else (data.get(field) not in among):
            return None
        changed = data | {field: to}
        if to is None:
            del changed[field]
        return changed

    return change


def likelier(rate: float) -> float:
    """Move an acceptance rate closer to 0.999, and return it; rates above 0.999 are unchanged."""
    return rate + (0.999 - rate) / 4 if rate < 0.999 else rate
