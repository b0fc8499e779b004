"""The optimum along a field of a problem: certified at every point, each started from the plan of
the one before.
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
from specopt.models.arrow import pyarrow
from specopt.models.errors import InvalidInput
from specopt.models.fields import without_numpy
from specopt.models.late import Picture, Shown, late
from specopt.models.problem import Problem
from specopt.models.result import Result, Termination


@dataclass(frozen=True, kw_only=True, eq=False)
class Front(Shown):
    """The optimum at each value of a field.

    Parameters
    ----------
    problem
        As it was given.
    field
        What changes, as `front` takes it.
    values, results
        By point: the value, and the result of the problem with it.
    seconds
        Of all solves together.
    """

    problem: Problem
    field: str
    values: tuple[Any, ...]
    results: tuple[Result, ...]
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether a solve was interrupted; the points after it are missing."""
        return any(result.termination is Termination.INTERRUPTED for result in self.results)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per point: the value, and that of its result."""
        return [
            {self.field: value} | one.row()
            for value, one in zip(self.values, self.results, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the points, with their plans, as JSON-like data."""
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
        """Return the rows as a table of Arrow."""
        return pyarrow().Table.from_pylist(self.rows())

    def plot(self) -> Picture:
        """Return the picture of plan and bound along the field."""
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
    """Solve a problem at several values of a field, each from the plan of the value before where it
    is one.

    Parameters
    ----------
    problem
        As it is at other values.
    field
        The field that changes; dots lead into nested ones, and in a list of parts a name sets that
        field of all.
    values
        Of the field, in the order in which they are solved.
    method
        As for `solve`.
    time_limit
        Seconds for everything; every solve gets an equal part of what is left when it starts.
    gap, seed
        As for `solve`.
    verbose
        Print the progress to stderr.

    Raises
    ------
    InvalidInput
        If there is no such field, the problem refuses a value, or there are none.

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
