"""Relations between the optimum of a problem and the optimum of a modified copy.

The module also contains functions that modify the JSON form of a problem.
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
    """Return the objective unchanged. Used for changes that do not affect the optimum."""
    return objective


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A metamorphic relation between the optimum of a problem and the optimum of a changed copy.

    Parameters
    ----------
    kind
        Name of the kind of problem.
    name
        Name of the change.
    when
        Condition under which the relation applies, as text.
    reason
        Reason why the relation holds, as text.
    change
        Function that maps the JSON form of a problem and a random number generator to the JSON form
        of the changed problem, or to None if the condition does not hold.
    implied
        Function that maps a problem and its optimal value to an objective. The optimum of the
        changed problem is at least as good as this objective.
    equal
        Whether the optimum of the changed problem is equal to the objective that `implied` returns.
    """

    kind: str
    name: str
    when: str = "always"
    reason: str
    change: Change
    implied: Callable[[Any, float], float] = unchanged
    equal: bool = False

    def changed(self, problem: Problem, seed: int = 0) -> Problem | None:
        """Return the changed copy of a problem, or None if the relation does not apply."""
        data = self.change(problem.to_dict(), Random(seed))
        return None if data is None else type(problem).from_dict(data)

    def check(
        self, solver: Solver, problem: Problem, *, seed: int = 0, tolerance: float = 1e-9
    ) -> bool:
        """Check that a solver that claims optimality satisfies the relation on a problem.

        Return True if the relation was checked, and False if it does not apply to the problem.

        Parameters
        ----------
        solver
            Function that maps a problem to a plan or a result.
        problem
            Problem to change.
        seed
            Random seed for the change.
        tolerance
            Relative difference of objectives that is attributed to rounding.

        Raises
        ------
        NotConformant
            If the solver's results for the two problems contradict the relation.
        InvalidInput
            If the problem belongs to another kind.
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
                before, after = (
                    "no plan" if one is None else f"a plan with objective {one!r}"
                    for one in (first, second)
                )
                defect = f"finds {before}, but {after} after the change"
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
    """Return a function that declares a relation for a kind of problem.

    The arguments of the returned function are the name, the reason and the change. All other fields
    are keyword arguments.
    """

    def declared(name: str, reason: str, change: Change, **more: Any) -> Relation:
        return Relation(kind=problem.kind, name=name, reason=reason, change=change, **more)

    return declared


def times(factor: float) -> Callable[[Problem, float], float]:
    """Return a function that multiplies an objective by a factor."""
    return lambda problem, objective: factor * objective


def permuted(*columns: str) -> Change:
    """Return a change that applies the same random permutation to several fields, which are lists.

    The first of these fields must exist in the problem.
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
    """Return the indices of a list in random order."""
    return random.sample(range(len(column)), len(column))


def scaled(factors: Mapping[str, float]) -> Change:
    """Return a change that multiplies the numbers in each field by a factor.

    `factors` contains the factors by field name. It may also contain names of nested fields.
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

    The change does not apply if the field is missing or if `unless` returns True for the problem.
    """

    def raised(data: Data, random: Random) -> Data | None:
        value = data.get(field)
        if value is None or unless(data):
            return None
        return data | {field: [*map(change, value)] if isinstance(value, list) else change(value)}

    return raised


def one_more(field: str) -> Change:
    """Return a change that adds 1 to a field, or to every entry if the field is a list."""
    return raised(field, lambda count: count + 1)


def replaced(field: str, to: Any, among: Sequence[Any] | None = None) -> Change:
    """Return a change that sets a field to the value `to` if its current value is in `among`.

    If `among` is None, the change applies whenever the field exists. If `to` is None, the field is
    removed.
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
    """Return a higher acceptance rate, which is closer to 0.999.

    Rates of at least 0.999 are returned unchanged.
    """
    return rate + (0.999 - rate) / 4 if rate < 0.999 else rate
