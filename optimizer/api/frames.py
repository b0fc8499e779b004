"""Conversion of plans, comparisons and sweeps to Arrow, pandas and Polars tables."""

from __future__ import annotations

from typing import Any

from specopt.kinds import kinds
from specopt.models.errors import InvalidInput
from specopt.models.extras import library, pyarrow
from specopt.models.fields import describe
from specopt.models.problem import Plan
from specopt.models.result import Result
from specopt.models.sweep import Sweep


def to_arrow(value: Any) -> Any:
    """Convert a plan, results, a comparison or a sweep to an Arrow table.

    Parameters
    ----------
    value
        Value to convert. A plan, or a result that contains a plan, yields the same rows as its CSV
        file. There is one row per result for a sequence of results, one row per point for a
        `Front`, one row per run for a `Comparison`, and one row per measurement for a `Sweep`.

    Raises
    ------
    InvalidInput
        If the value has another type, or if a single result has no plan.
    """
    if isinstance(value, Result):
        value = value.plan
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, Result) for one in value):
        rows = [result.row() for result in value]
    elif isinstance(value, Plan):
        kind = next(kind for kind in kinds() if kind.plan is type(value))
        rows = list(kind.rows(value))
    elif isinstance(value, Sweep):
        rows = [
            {
                "concurrency": one.point.condition.concurrency,
                "workload": one.point.condition.workload,
                "context_tokens": one.point.condition.context_tokens,
                **vars(one.setup),
                "draft_length": one.point.draft_length,
                "output_tokens_per_second": one.tokens_per_second,
                "mean_acceptance_length": one.acceptance_length,
            }
            for one in value.measurements
        ]
    elif hasattr(value, "to_arrow"):
        return value.to_arrow()
    else:
        raise InvalidInput(
            f"table: expected a plan, results, a comparison or a sweep, got {describe(value)}"
        )
    return pyarrow().Table.from_pylist(rows)


def to_pandas(value: Any) -> Any:
    """Convert any value that `to_arrow` accepts to a pandas data frame.

    Raises
    ------
    MissingDependency
        If pandas is not installed.
    """
    library("pandas", "data frames need pandas; run pip install pandas")
    return to_arrow(value).to_pandas()


def to_polars(value: Any) -> Any:
    """Convert any value that `to_arrow` accepts to a Polars data frame.

    Raises
    ------
    MissingDependency
        If Polars is not installed.
    """
    return library("polars", "data frames need polars; run pip install polars").from_arrow(
        to_arrow(value)
    )
