"""Solutions of a problem for several values of one of its fields, each with its own certificate.

Each solve starts from the plan found for the previous value.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from specopt.api.arguments import with_field
from specopt.api.functions import MethodLike
from specopt.api.scan import scan, solving
from specopt.api.solve import check_arguments
from specopt.models.arguments import sequence
from specopt.models.errors import InvalidInput
from specopt.models.extras import pyarrow
from specopt.models.fields import without_numpy
from specopt.models.late import Picture, Shown, late
from specopt.models.problem import Problem
from specopt.models.result import Result, Termination


@dataclass(frozen=True, kw_only=True, eq=False)
class Front(Shown):
    """Results of a problem for several values of one field.

    Parameters
    ----------
    problem
        Original problem.
    field
        Name of the field, as passed to `front`.
    values
        Values of the field.
    results
        Result for each value.
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
        """Whether a solve was interrupted, so that later points are missing."""
        return any(result.termination is Termination.INTERRUPTED for result in self.results)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per point, with the field value and the row of the result."""
        return [
            {self.field: value} | one.row()
            for value, one in zip(self.values, self.results, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the points and their plans as JSON-compatible data."""
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
        """Return a chart of the objective and the bound against the field."""
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
    """Solve a problem for several values of a field, each time starting from the previous plan.

    A plan that is infeasible for the next value is not used as a start.

    Parameters
    ----------
    problem
        Problem whose field varies.
    field
        Name of the field. Dots separate the levels of nested fields. A name applied to a list
        changes that field in all entries.
    values
        Values of the field, in the order in which they are solved.
    method
        As for `solve`.
    time_limit
        Time limit for all solves together, in seconds. Each solve may use an equal share of the
        remaining time.
    gap
        As for `solve`.
    seed
        As for `solve`.
    verbose
        Whether to print progress to stderr.

    Raises
    ------
    InvalidInput
        If the field does not exist, the problem rejects a value, or no values are given.

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
        raise InvalidInput("values: expected one or more, got none")
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
