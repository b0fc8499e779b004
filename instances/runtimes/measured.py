"""Runtimes that interpolate in a table of measured passes instead of using a fitted form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.instances.runtimes.table import RuntimeTable
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, dump
from specopt.models.pass_time.measured import MeasuredPasses, PassTable

FORM = "table"


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredRuntime:
    """A table of measured passes, used as a runtime.

    Parameters
    ----------
    passes
        Table of measured passes.
    interpolation
        Interpolant of the table.
    source
        Table from which the passes were read.
    """

    passes: PassTable
    interpolation: MeasuredPasses
    source: RuntimeTable

    @classmethod
    def from_table(
        cls, table: RuntimeTable, quantiles: tuple[Floats, Floats] | None = None
    ) -> MeasuredRuntime:
        """Build a runtime from a table of measured passes.

        Parameters
        ----------
        table
            Table with one column of new tokens per request, and separate columns for the batch size
            and for cached tokens.
        quantiles
            Low and high quantile of the repeated measurements in each row, in seconds.

        Raises
        ------
        InvalidInput
            If the table has other columns, if counts are not integers, or if the grid has gaps.
        """
        if table.x.shape[1] != 1:
            raise InvalidInput(
                f"x: expected a single column (new tokens per request), got {table.x.shape[1]}"
            )
        counts = np.column_stack([table.batch, table.x[:, 0], table.cached])
        if not (counts == np.round(counts)).all():
            row = int(np.argmax((counts != np.round(counts)).any(axis=1)))
            raise InvalidInput(
                f"line {table.lines[row]}: expected whole counts of batch and tokens, got"
                f" {counts[row]}"
            )
        batch, new, cached = counts.astype(np.int64).T
        passes = PassTable(
            batch=batch,
            new_tokens=new,
            cached_tokens=cached,
            seconds=table.seconds,
            spread=None if quantiles is None else np.maximum(quantiles[1] - quantiles[0], 0.0),
        )
        return cls(
            passes=passes, interpolation=MeasuredPasses.from_table(passes, FORM), source=table
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the runtime in the form in which it is written to a file."""
        return {
            "form": FORM,
            "table": dump(self.passes),
            "warnings": [*self.source.warnings, *self.interpolation.notes],
            "source": {
                "table": self.source.source,
                "rows": self.source.rows[0],
                "rows_taken": self.source.rows[1],
            },
        }
