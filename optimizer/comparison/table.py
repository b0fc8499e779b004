"""The class `Comparison`, which contains the records of a comparison, computes gaps to the best
bounds, and exports tables.
"""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from specopt.api.library import known_values
from specopt.comparison.cell import Record
from specopt.kinds import kind_of
from specopt.models.errors import InvalidInput
from specopt.models.extras import pyarrow
from specopt.models.fields import describe
from specopt.models.files import write_bytes
from specopt.models.judge import proof_of
from specopt.models.late import Picture, Shown, late
from specopt.models.reading import StrPath
from specopt.models.result import Status

WITHIN = 1e-9
"""Relative distance from the best objective within which a plan also counts as best."""

MIN_GAP = 1e-6
"""Relative gap below which charts and leaderboards show 0. Such gaps are due to rounding."""

_NESTED = ("options", "versions", "scale", "sources", "stats")
"""Fields of records that exported tables contain as JSON strings."""

_COMPARED = ("best_objective", "best_bound", "gap_to_best_bound", "excess_over_best")
"""Columns that exported tables contain in addition to the fields of records."""


def expect_comparison(value: object) -> None:
    """Raise InvalidInput unless a value is a result of `compare`."""
    if not isinstance(value, Comparison):
        raise InvalidInput(f"comparison: expected the result of compare, got {describe(value)}")


def newest(records: Iterable[Record]) -> list[Record]:
    """Return only the newest record of each cell."""
    return list(
        {
            record.identity: record for record in sorted(records, key=lambda record: record.started)
        }.values()
    )


class Comparison(Shown):
    """Records of a comparison, together with the best results for each problem.

    Parameters
    ----------
    records
        Records, in any order.
    known
        Pairs of the best objective and the best bound that are known from other sources, by
        `problem_sha256`. None in a pair stands for an unknown value. By default, the values in the
        instance library are used.
    """

    def __init__(
        self,
        records: Sequence[Record],
        known: Mapping[str, tuple[float | None, float | None]] | None = None,
    ) -> None:
        known = known_values() if known is None else known
        self._best = {
            one.problem_sha256: known.get(one.problem_sha256, (None, None)) for one in records
        }
        for record in records:
            objective, bound = self.best(record)
            if not record.failed:
                self._best[record.problem_sha256] = (
                    _better(record, objective, record.objective),
                    bound,
                )
        held = (without_refuted(record, self.best(record)[0]) for record in records)
        self.records = tuple(
            sorted(held, key=lambda r: (r.kind, r.instance, r.method, str(r.options), r.seed))
        )
        for record in self.records:
            objective, bound = self.best(record)
            self._best[record.problem_sha256] = (
                objective,
                _better(record, bound, record.bound, rising=True),
            )

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @property
    def kinds(self) -> list[str]:
        """Names of the kinds of problems, in the order of the records."""
        return list(dict.fromkeys(record.kind for record in self))

    def cells(self, kind: str) -> list[dict[str, Record]]:
        """Return the records of a kind, grouped by cell.

        Each group contains the records for one problem, seed and set of limits, by method label.
        """
        found: dict[tuple[Any, ...], dict[str, Record]] = {}
        for record in self.records:
            if record.kind == kind:
                cell = (record.problem_sha256, record.seed, record.time_limit, record.gap_limit)
                found.setdefault(cell, {})[record.label] = record
        return list(found.values())

    @staticmethod
    def common(cells: Iterable[dict[str, Record]]) -> list[dict[str, Record]]:
        """Return the common cells, on which methods are compared.

        These are the cells accepted by every method that accepted at least half of all cells.
        Records of other methods are removed.
        """
        cells = list(cells)
        taken = Counter(label for cell in cells for label in cell)
        labels = [label for label, count in taken.items() if 2 * count >= len(cells)]
        return [
            {label: cell[label] for label in labels} for cell in cells if cell.keys() >= set(labels)
        ]

    def __repr__(self) -> str:
        methods, problems = (
            {getattr(r, name) for r in self} for name in ("label", "problem_sha256")
        )
        failed = sum(record.failed for record in self)
        return (
            f"<Comparison of {len(methods)} methods on {len(problems)} problems: {len(self)} cells,"
            f" {failed} failed>"
        )

    def best(self, record: Record) -> tuple[float | None, float | None]:
        """Return the best objective and the best bound for the problem of a record.

        Both are the best values over all methods and the values known from other sources.
        """
        return self._best[record.problem_sha256]

    def gap(self, record: Record) -> float | None:
        """Return the relative gap between a record's objective and the best known bound.

        The gap is None if the objective or the bound is missing.
        """
        return _distance(record, self.best(record)[1])

    def excess(self, record: Record) -> float | None:
        """Return the relative distance between a record's objective and the best objective.

        The distance is None if the record has no plan.
        """
        return _distance(record, self.best(record)[0])

    def proven(self, record: Record) -> bool:
        """Return whether the best known bound proves that a record's plan is optimal.

        A gap within the tolerance counts as a proof. Also return True if the record proves that no
        feasible plan exists.
        """
        return record.infeasible or _within(self.gap(record))

    def wins(self, record: Record) -> bool:
        """Return whether a record's plan is as good as the best known plan, within the tolerance.

        Also return True if the record proves that no feasible plan exists.
        """
        return record.infeasible or _within(self.excess(record))

    def plot(self) -> Picture:
        """Return the performance profiles, which plot the share of cells against gap and time."""
        picture: Picture = late("picture")(self)
        return picture

    def rows(self) -> list[dict[str, Any]]:
        """Return one table row per record. All rows have the same columns."""
        rows = []
        for record in self.records:
            row = record.to_dict()
            del row["plan"]
            for name in _NESTED:
                row[name] = json.dumps(row[name], sort_keys=True)
            compared = *self.best(record), _finite(self.gap(record)), _finite(self.excess(record))
            rows.append(row | dict(zip(_COMPARED, compared, strict=True)))
        return rows

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""
        arrow = pyarrow()
        types = {"float": arrow.float64(), "int": arrow.int64()}
        hints = {one.name: str(one.type) for one in fields(Record) if one.name != "plan"}
        hints |= dict.fromkeys(_COMPARED, "float")
        columns = {
            name: types.get(hint.partition(" ")[0], arrow.string()) for name, hint in hints.items()
        }
        return arrow.Table.from_pylist(self.rows(), schema=arrow.schema(columns))

    def to_parquet(self, path: StrPath) -> None:
        """Write the table as a Parquet file. A failed write leaves no partial file.

        Raises
        ------
        InvalidInput
            If the file cannot be written.
        """
        table = self.to_arrow()
        from pyarrow import parquet

        out = io.BytesIO()
        parquet.write_table(table, out)
        write_bytes(path, out.getvalue())


def without_refuted(record: Record, best: float | None, size: float = 0.0) -> Record:
    """Remove from a record the claims that the best known plan refutes.

    The field `error` of the returned record states which claim was refuted.

    Parameters
    ----------
    record
        Record as read from a file.
    best
        Objective of the best known plan for the problem; None if no plan is known.
    size
        Magnitude of the terms that are summed in the objective, as given in the judge's report. It
        determines the rounding tolerance.
    """
    if record.failed:
        return replace(record, objective=None, bound=None, gap=None)
    if best is None:
        return record if record.infeasible else replace(record, status=Status.NONE.value, gap=None)
    if record.infeasible:
        error = f"its proof that no plan exists is refuted by a plan with objective {best:.9g}"
        record = replace(record, status=Status.NONE.value, termination=None, error=error)
    kind = kind_of(record.kind).problem
    if proof_of(kind, best, record.bound, MIN_GAP, record.scale, size).refuted:
        record = replace(
            record,
            error=f"its bound {record.bound:.9g} is refuted by a plan with objective {best:.9g}",
            bound=None,
        )
    if record.objective is None:
        return replace(record, status=Status.NONE.value, gap=None)
    gap = proof_of(kind, record.objective, record.bound, MIN_GAP, record.scale, size).gap
    claimed = record.status == Status.OPTIMAL
    optimal = gap is not None and gap <= max(record.gap_limit, MIN_GAP)
    agrees = (
        gap is not None
        and record.gap is not None
        and abs(record.gap - gap) <= MIN_GAP * max(1.0, gap)
    )
    status = Status.OPTIMAL if claimed and optimal else Status.FEASIBLE
    return replace(record, status=status.value, gap=record.gap if agrees else gap)


def _finite(distance: float | None) -> float | None:
    return distance if distance is not None and math.isfinite(distance) else None


def _within(distance: float | None) -> bool:
    return distance is not None and distance <= WITHIN


def _better(
    record: Record, one: float | None, other: float | None, *, rising: bool = False
) -> float | None:
    """Return the better of two objectives or, if `rising` is set, the tighter of two bounds.

    Values that are None are ignored.
    """
    least = (kind_of(record.kind).problem.sense_of(record.scale) == "minimize") != rising
    found = [value for value in (one, other) if value is not None]
    return min(found, default=None) if least else max(found, default=None)


def _distance(record: Record, reference: float | None) -> float | None:
    """Return the relative distance between a record's objective and a reference value.

    The distance is None if the objective or the reference is missing.
    """
    if record.objective is None or reference is None:
        return None
    distance = kind_of(record.kind).problem.distance(record.objective, reference, record.scale)
    return distance if math.isfinite(distance) else math.inf
