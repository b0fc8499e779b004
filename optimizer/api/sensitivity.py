"""What one more unit of each resource is worth: finite differences on re-solved optima.

Every resource of the problem's kind is raised by its unit, alone, and the problem is solved again,
by default by the method that `solve` takes.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

from specopt.api.functions import MethodLike
from specopt.api.scan import scan, solving
from specopt.api.solve import check_arguments, choose
from specopt.kinds import kind_of
from specopt.kinds.kind import Perturbation
from specopt.models.errors import InvalidInput
from specopt.models.late import Shown
from specopt.models.problem import Problem
from specopt.models.result import Result, Termination


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """What the optimum does when one resource grows by its unit.

    Parameters
    ----------
    field, unit
        The resource, and what was added.
    before, after
        Objectives of the plans found without and with it; None where no plan was found.
    change, percent
        after - before, and the same in per cent of before; differences within the tolerance of the
        method are 0.
    bounds
        Interval in which the change of the true optima lies, from the plans and bounds of both
        solves; None at an end that is open. Both ends are `change` if `proven`.
    proven
        Whether both plans are proven optimal, so that the change is exact.
    result
        Result of the perturbed solve; None if it was not run.
    explanation
        Why there is no change to report; None otherwise.
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
        """Return everything but the plan as JSON-like data."""
        out = {
            entry.name: getattr(self, entry.name)
            for entry in dataclasses.fields(self)
            if entry.name != "result"
        }
        out["bounds"] = list(self.bounds)
        out["status"] = None if self.result is None else self.result.status.value
        return out


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensitivity(Shown):
    """What one more unit of each resource is worth.

    Parameters
    ----------
    base
        Result of the problem as it is.
    changes
        One entry per resource that the problem makes use of.
    seconds
        Time of all solves together.
    """

    base: Result
    changes: tuple[Change, ...]
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether a solve was interrupted; the resources after it are missing."""
        results = [
            self.base,
            *(change.result for change in self.changes if change.result is not None),
        ]
        return any(result.termination is Termination.INTERRUPTED for result in results)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the plans as JSON-like data."""
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
    """Return what one more unit of each resource is worth, by solving the problem again with it.

    Parameters
    ----------
    problem
        The problem as it is.
    method
        As for `solve`; one method solves all the problems.
    time_limit
        Seconds for everything; every solve gets an equal part of what is left when it starts.
    gap, seed
        As for `solve`. A gap above 0 makes the changes intervals, not numbers.
    verbose
        Print the progress to stderr.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    Unsupported
        If the method cannot take the problem.

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
        ("the problem as it is", problem),
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
    """Return the resources of a problem that it makes use of."""
    return tuple(one for one in kind_of(problem).perturbations if one.apply(problem) is not None)


def _perturbed(problem: Problem, perturbation: Perturbation) -> Problem | str:
    """Return the problem with one more unit, or why that is no problem."""
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
    """Return the difference of two results, or the reason why there is no second one."""
    before = base.objective
    if isinstance(result, str):
        return Change(
            field=perturbation.field, unit=perturbation.unit, before=before, explanation=result
        )
    after = result.objective
    change = percent = explanation = None
    bounds: tuple[float | None, float | None] = (None, None)
    proven = before is not None and after is not None and base.gap == result.gap == 0.0
    if before is None or after is None:
        explanation = base.explanation if before is None else result.explanation
        if before is None and after is not None:
            explanation = f"only with {perturbation.unit} there is a plan"
    else:
        change = after - before
        if abs(change) <= tolerance * abs(before):
            change = 0.0
        percent = 100.0 * change / abs(before) if before else None
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
        result=result,
        explanation=explanation,
    )


def _bounds(problem: Problem, base: Result, result: Result) -> tuple[float | None, float | None]:
    """Return the interval of the change of the true optima, each of which lies between its bound
    and objective.
    """
    low_before, high_before = base.bound, base.objective
    low_after, high_after = result.bound, result.objective
    if problem.sense == "maximize":
        low_before, high_before, low_after, high_after = (
            high_before,
            low_before,
            high_after,
            low_after,
        )
    low = None if low_after is None or high_before is None else low_after - high_before
    high = None if high_after is None or low_before is None else high_after - low_before
    return low, high
