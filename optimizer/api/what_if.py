"""Sensitivity analysis by solving modified problems.

`sensitivity` increases each resource by one unit, one resource at a time, and solves the problem
again. `front` solves a problem for several values of a field. It starts each solve from the plan
found for the previous value, and certifies each solution separately.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from specopt.api.arguments import with_field
from specopt.api.scan import scan, solving
from specopt.api.solve import MethodLike, check_arguments, choose
from specopt.kinds import kind_of
from specopt.kinds.kind import Perturbation
from specopt.models.arguments import sequence
from specopt.models.errors import InvalidInput
from specopt.models.extras import pyarrow
from specopt.models.fields import without_numpy
from specopt.models.late import Picture, Shown, late
from specopt.models.problem import Problem
from specopt.models.result import Result, Termination


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """Effect on the optimum of increasing one resource by one unit.

    Parameters
    ----------
    field
        Name of the problem field that contains the resource.
    unit
        Description of the added unit.
    before
        Objective of the plan found without the unit; None if no plan was found.
    after
        Objective of the plan found with the unit; None if no plan was found.
    change
        Difference `after - before`; None if it is unknown. Differences within the tolerance of the
        method count as 0.
    percent
        Change in percent of the absolute value of `before`; None if it is undefined.
    bounds
        Interval that contains the change in the true optimum, computed from the plans and bounds of
        the two solves. None in place of an end means that the interval is unbounded there. If
        `proven` is True, both ends equal `change`.
    proven
        Whether both plans are proven optimal, so that the change is exact.
    result
        Result for the problem with the added unit; None if that problem was not solved.
    explanation
        Reason why `change` is None; None if a change is reported.
    """

    field: str
    unit: str
    before: float | None = None
    after: float | None = None
    change: float | None = None
    percent: float | None = None
    bounds: tuple[float | None, float | None] = (None, None)
    proven: bool = False
    result: Result | None = dataclasses.field(default=None, repr=False)
    explanation: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-compatible data. Only the status of the result is included."""
        out = {name: value for name, value in vars(self).items() if name != "result"}
        status = None if self.result is None else self.result.status.value
        return out | {"bounds": list(self.bounds), "status": status}


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensitivity(Shown):
    """Effects on the optimum of increasing each resource by one unit.

    Parameters
    ----------
    base
        Result for the unchanged problem.
    changes
        One entry for each resource that the problem uses.
    seconds
        Total duration of all solves, in seconds.
    """

    base: Result
    changes: tuple[Change, ...]
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether a solve was interrupted. If so, the later resources are missing."""
        results = [self.base, *(change.result for change in self.changes)]
        return any(one and one.termination is Termination.INTERRUPTED for one in results)

    def to_dict(self) -> dict[str, Any]:
        """Return the sensitivity as JSON-compatible data, which omits the plans."""
        base = self.base.to_dict()
        names = (
            "method",
            "options",
            "status",
            "termination",
            "objective",
            "bound",
            "gap",
            "explanation",
        )
        return {
            "kind": base["kind"],
            "problem_sha256": base["problem_sha256"],
            "how": "finite differences on re-solved optima",
            **{name: base[name] for name in names},
            "changes": [change.to_dict() for change in self.changes],
            "seconds": self.seconds,
        }


def sensitivity(
    problem: Problem,
    method: MethodLike | None = None,
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    verbose: bool = False,
) -> Sensitivity:
    """Measure how the optimum changes when each resource in turn increases by one unit.

    The problem is solved again for each resource.

    Parameters
    ----------
    problem
        Problem whose resources are increased.
    method
        Method for all solves, as in `solve`.
    time_limit
        Time limit for all solves together, in seconds. Each solve may use an equal share of the
        remaining time.
    gap
        As in `solve`. With a gap above 0, a change may be known only as an interval.
    seed
        As in `solve`.
    verbose
        Whether to print progress to stderr.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    Unsupported
        If the method cannot solve the problem.

    Examples
    --------
    >>> import specopt
    >>> problem = specopt.generate("serving-latency/paper-1", tasks=3, max_output=20, seed=1)
    >>> bandwidth = specopt.sensitivity(problem).changes[0]
    >>> bandwidth.unit, bandwidth.proven, bandwidth.change < 0
    ('+1 MHz bandwidth', True, True)
    """
    started = time.perf_counter()
    check_arguments(problem, time_limit, gap, seed)
    chosen = choose(problem, method)
    units = perturbations(problem)
    changes = [
        ("the unchanged problem", problem),
        *((one.unit, _perturbed(problem, one)) for one in units),
    ]
    answer = solving(chosen, 0, gap=gap, seed=seed)
    base, *others = scan(changes, answer, started=started, time_limit=time_limit, verbose=verbose)
    compared = zip(units, others, strict=False)  # after an interruption there are fewer results
    return Sensitivity(
        base=base,
        changes=tuple(
            _change(problem, unit, base, other, chosen.tolerance) for unit, other in compared
        ),
        seconds=time.perf_counter() - started,
    )


def perturbations(problem: Problem) -> tuple[Perturbation, ...]:
    """Return one perturbation for each resource that a problem uses."""
    return tuple(one for one in kind_of(problem).perturbations if one.apply(problem) is not None)


def _perturbed(problem: Problem, perturbation: Perturbation) -> Problem | str:
    """Return the problem with one unit of a resource added.

    If that problem would be invalid, return the reason as a string instead.
    """
    try:
        return dataclasses.replace(problem, **{perturbation.field: perturbation.apply(problem)})
    except InvalidInput as error:
        return str(error)


def _change(
    problem: Problem,
    perturbation: Perturbation,
    base: Result,
    result: Result | str,
    tolerance: float,
) -> Change:
    """Return the change from `base` to `result`.

    If one of the two objectives is missing, the change contains an explanation instead.
    """
    found = None if isinstance(result, str) else result
    before, after = base.objective, None if found is None else found.objective
    change = percent = explanation = None
    bounds: tuple[float | None, float | None] = (None, None)
    proven = False
    if isinstance(result, str):
        explanation = result
    elif before is None:
        explanation = base.explanation
        if after is not None:
            explanation = f"a plan exists only with {perturbation.unit}"
    elif after is None:
        explanation = result.explanation
    else:
        change = after - before
        if abs(change) <= tolerance * abs(before):
            change = 0.0
        percent = 100.0 * change / abs(before) if before else None
        proven = base.gap == result.gap == 0.0
        bounds = (change, change) if proven else _bounds(problem, base, result)
    return Change(
        field=perturbation.field,
        unit=perturbation.unit,
        before=before,
        after=after,
        change=change,
        percent=percent,
        bounds=bounds,
        proven=proven,
        result=found,
        explanation=explanation,
    )


def _bounds(problem: Problem, base: Result, result: Result) -> tuple[float | None, float | None]:
    """Return an interval that contains the change in the true optimum.

    The interval follows from the fact that the optimum of each problem lies between the bound and
    the objective in its result.
    """
    order = 1 if problem.sense == "minimize" else -1
    low_before, high_before = (base.bound, base.objective)[::order]
    low_after, high_after = (result.bound, result.objective)[::order]
    low = None if low_after is None or high_before is None else low_after - high_before
    high = None if high_after is None or low_before is None else high_after - low_before
    return low, high


@dataclass(frozen=True, kw_only=True, eq=False)
class Front(Shown):
    """Results for a problem in which one field takes several values.

    Parameters
    ----------
    problem
        Problem before the field was changed.
    field
        Name of the field, as passed to `front`.
    values
        Values of the field, in the order in which they were solved.
    results
        Results, one per value.
    seconds
        Total duration of all solves, in seconds.
    """

    problem: Problem
    field: str
    values: tuple[Any, ...]
    results: tuple[Result, ...]
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether a solve was interrupted. Later points are then missing."""
        return any(result.termination is Termination.INTERRUPTED for result in self.results)

    def rows(self) -> list[dict[str, Any]]:
        """Return one table row per point, with the field's value and the columns of the result."""
        return [
            {self.field: value} | one.row()
            for value, one in zip(self.values, self.results, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the points, including their plans, as JSON-compatible data."""
        points = [
            {
                "value": row.pop(self.field),
                **row,
                "terms": one.terms,
                "plan": one.plan and one.plan.to_dict(),
            }
            for row, one in zip(self.rows(), self.results, strict=True)
        ]
        return {
            "kind": self.problem.kind,
            "problem_sha256": self.problem.sha256,
            "field": self.field,
            "points": points,
            "seconds": self.seconds,
        }

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""
        return pyarrow().Table.from_pylist(self.rows())

    def plot(self) -> Picture:
        """Return a chart that plots the objective and the bound against the field."""
        picture: Picture = late("picture")(self)
        return picture


def front(
    problem: Problem,
    field: str,
    values: Sequence[Any] | NDArray[Any],
    method: MethodLike | None = None,
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    verbose: bool = False,
) -> Front:
    """Solve a problem for several values of one of its fields.

    If the method supports warm starts, each solve starts from the plan for the previous value,
    unless that plan has become infeasible.

    Parameters
    ----------
    problem
        Problem whose field varies.
    field
        Name of the field. Dots separate the levels of nested fields. If a level is a list, an
        integer selects one entry, and any other name is applied to every entry.
    values
        Values of the field, in the order in which they are solved.
    method
        As in `solve`.
    time_limit
        Time limit for all solves together, in seconds. Each solve may use an equal share of the
        remaining time.
    gap
        As in `solve`.
    seed
        As in `solve`.
    verbose
        Whether to print progress to stderr.

    Raises
    ------
    InvalidInput
        If the field does not exist, if the problem rejects a value, or if there are no values.

    Examples
    --------
    >>> import specopt
    >>> problem = specopt.generate("serving-latency/paper-1", tasks=4, max_output=20, seed=1)
    >>> found = specopt.front(problem, "bandwidth_hz", [1e7, 2e7])
    >>> [result.status.value for result in found.results]
    ['optimal', 'optimal']
    >>> found.results[1].objective < found.results[0].objective
    True
    """
    started = time.perf_counter()
    check_arguments(problem, time_limit, gap, seed)
    plain = [without_numpy(value) for value in sequence("values", values)]
    if not plain:
        raise InvalidInput("values: expected at least one value, got none")
    changes = [(f"{field} = {value}", with_field(problem, field, value)) for value in plain]
    answer = solving(method, -1, gap=gap, seed=seed)
    results = scan(changes, answer, started=started, time_limit=time_limit, verbose=verbose)
    return Front(
        problem=problem,
        field=field,
        values=tuple(plain[: len(results)]),
        results=tuple(results),
        seconds=time.perf_counter() - started,
    )
