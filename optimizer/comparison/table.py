"""The table of a comparison: records, gaps to the best bound of any method, files."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specopt.api.library import known_values
from specopt.comparison.cell import Record
from specopt.comparison.instances import parameters_in
from specopt.kinds import kind_of
from specopt.models.files import csv_text, write_bytes, write_text
from specopt.models.judge import proof_of
from specopt.models.problem import Shown
from specopt.models.reading import StrPath
from specopt.models.result import Status

if TYPE_CHECKING:
    import pyarrow

WITHIN = 1e-9
"""Relative distance to the best objective at which a plan counts as the best, too."""

LEAST_GAP = 1e-6
"""Gaps and shortfalls below this are rounding: pictures and leaderboards show 0."""

_NESTED = ("options", "versions", "scale", "machine", "sources", "stats")
"""Fields of records that tables hold as JSON."""

_OWN: dict[str, Callable[[Comparison, Record], float | None]] = {
    "best_objective": lambda table, record: table.best(record)[0],
    "best_bound": lambda table, record: table.best(record)[1],
    "gap_to_best_bound": lambda table, record: _finite(table.gap(record)),
    "shortfall": lambda table, record: table.shortfall(record),
    "excess_over_best": lambda table, record: _finite(table.excess(record)),
}
"""Columns of tables beside the fields of records."""

_NAMES = [*(name for name in Record.__dataclass_fields__ if name != "plan"), *_OWN]


def cells_of_kinds(comparison: Comparison) -> Iterator[tuple[str, list[dict[str, Record]]]]:
    """Give every kind of problem with its cells, in each of which records stand by the method's label."""
    for kind in dict.fromkeys(record.kind for record in comparison):
        yield kind, list(comparison.cells(kind).values())


def newest(records: Iterable[Record]) -> list[Record]:
    """Return the newest record of every cell: those that were run with sources of earlier days are history."""
    return list({record.identity: record for record in sorted(records, key=lambda record: record.started)}.values())


class Comparison(Shown):
    """Records of many cells, and what they say together.

    Parameters
    ----------
    records
        In any order.
    known
        Best known objective and bound by problem_sha256, from elsewhere, each None where unknown; default: those of the
        instance library.
    """

    def __init__(
        self, records: Sequence[Record], known: Mapping[str, tuple[float | None, float | None]] | None = None
    ) -> None:
        known = known_values() if known is None else known
        self._best: dict[str, tuple[float | None, float | None]] = {}
        for record in records:
            objective, bound = self._best.get(record.problem_sha256) or known.get(record.problem_sha256, (None, None))
            if not record.failed:
                objective = _better(record, objective, record.objective)
            self._best[record.problem_sha256] = (objective, bound)
        held = (held_against(record, self.best(record)[0]) for record in records)
        self.records = tuple(sorted(held, key=lambda r: (r.kind, r.instance, r.method, str(r.options), r.seed)))
        for record in self.records:
            objective, bound = self.best(record)
            self._best[record.problem_sha256] = (objective, _better(record, bound, record.bound, rising=True))

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def cells(self, kind: str) -> dict[tuple[Any, ...], dict[str, Record]]:
        """Return the records of a kind by cell, which is problem, seed and limits, and by the method's label."""
        found: dict[tuple[Any, ...], dict[str, Record]] = {}
        for record in self.records:
            if record.kind == kind:
                cell = (record.problem_sha256, record.seed, record.time_limit, record.gap_limit)
                found.setdefault(cell, {})[record.label] = record
        return found

    @staticmethod
    def common(cells: Iterable[dict[str, Record]]) -> list[dict[str, Record]]:
        """Return those of some cells that every method took which took at least half of them, without other methods."""
        cells = list(cells)
        taken = Counter(label for cell in cells for label in cell)
        labels = [label for label, count in taken.items() if 2 * count >= len(cells)]
        return [{label: cell[label] for label in labels} for cell in cells if cell.keys() >= set(labels)]

    def __repr__(self) -> str:
        methods, problems = ({getattr(r, name) for r in self} for name in ("label", "problem_sha256"))
        failed = sum(record.failed for record in self)
        return f"<Comparison of {len(methods)} methods on {len(problems)} problems: {len(self)} cells, {failed} failed>"

    def best(self, record: Record) -> tuple[float | None, float | None]:
        """Return the best objective and the best bound of any method, or known, on the record's problem."""
        return self._best[record.problem_sha256]

    def gap(self, record: Record) -> float | None:
        """Return the relative distance of a record's objective to the best bound; None if one is missing."""
        return _distance(record, self.best(record)[1])

    def shortfall(self, record: Record) -> float | None:
        """Return how much of the best bound a record's objective lacks, 0 to 1; None where it is to be minimised."""
        bound, problem = self.best(record)[1], kind_of(record.kind).problem
        if record.objective is None or bound is None or problem.sense_of(record.scale) == "minimize":
            return None
        reached, most = (problem.worth(value, record.scale) for value in (record.objective, bound))
        if reached >= most:
            return 0.0
        return min(1.0, (most - reached) / most) if most > 0.0 and math.isfinite(most) else None

    def excess(self, record: Record) -> float | None:
        """Return the relative distance of a record's objective to the best objective; None without a plan."""
        return _distance(record, self.best(record)[0])

    def proven(self, record: Record) -> bool:
        """Return whether a record's plan is optimal by the best bound of any method, within the format's tolerance.

        A proof that no plan is feasible counts as well.
        """
        return record.infeasible or _within(self.gap(record))

    def wins(self, record: Record) -> bool:
        """Return whether no method has a better plan for the record's problem, or it proves that there is none."""
        return record.infeasible or _within(self.excess(record))

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per record, all with the same keys."""
        swept = self._swept()
        return [
            {
                name: json.dumps(value, sort_keys=True) if name in _NESTED else value
                for name, value in record.to_dict().items()
                if name != "plan"
            }
            | {name: of(self, record) for name, of in _OWN.items()}
            | {f"parameter_{name}": parameters_in(record.instance).get(name) for name in swept}
            for record in self.records
        ]

    def _swept(self) -> dict[str, bool]:
        """Return the parameters that names of instances contain, and whether all their values are numbers."""
        found: dict[str, bool] = {}
        for record in self.records:
            for name, value in parameters_in(record.instance).items():
                found[name] = found.get(name, True) and isinstance(value, float)
        return found

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as an Arrow table."""
        import pyarrow

        types = {"float": pyarrow.float64(), "int": pyarrow.int64()}
        hints = {name: Record.__annotations__.get(name, "float").partition(" ")[0] for name in _NAMES}
        columns = {name: types.get(hint, pyarrow.string()) for name, hint in hints.items()}
        rows = self.rows()
        for name, numbers in self._swept().items():
            column = f"parameter_{name}"
            columns[column] = pyarrow.float64() if numbers else pyarrow.string()
            for row in rows:
                row[column] = row[column] if numbers or row[column] is None else str(row[column])
        return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(columns))

    def to_parquet(self, path: StrPath) -> None:
        """Write the table as Parquet, all or nothing.

        Raises
        ------
        InvalidInput
            If the file cannot be written.
        """
        from pyarrow import parquet

        out = io.BytesIO()
        parquet.write_table(self.to_arrow(), out)
        write_bytes(path, out.getvalue())

    def to_csv(self, path: StrPath) -> None:
        """Write the table as CSV, all or nothing.

        Raises
        ------
        InvalidInput
            If the file cannot be written.
        """
        names = [*_NAMES, *(f"parameter_{name}" for name in self._swept())]
        write_text(path, csv_text([names, *(row.values() for row in self.rows())]))


def held_against(record: Record, best: float | None, size: float = 0.0) -> Record:
    """Return a record without the claims that the best plan of its problem refutes; `error` says which these are.

    Parameters
    ----------
    record
        As it was read.
    best
        Objective of the best plan; None if there is no plan.
    size
        Size of the terms of the objective, as the judge's report has it.
    """
    if record.failed:
        return replace(record, objective=None, bound=None, gap=None)
    if best is None:
        return record if record.infeasible else replace(record, status=Status.NONE.value, gap=None)
    if record.infeasible:
        error = f"its proof that there is no plan is refuted by a plan of {best:.9g}"
        record = replace(record, status=Status.NONE.value, termination=None, error=error)
    kind = kind_of(record.kind).problem
    if proof_of(kind, best, record.bound, LEAST_GAP, record.scale, size).refuted:
        record = replace(record, error=f"its bound {record.bound:.9g} is refuted by a plan of {best:.9g}", bound=None)
    if record.objective is None:
        return replace(record, status=Status.NONE.value, gap=None)
    gap = proof_of(kind, record.objective, record.bound, LEAST_GAP, record.scale, size).gap
    claimed, optimal = record.status == Status.OPTIMAL, gap is not None and gap <= max(record.gap_limit, LEAST_GAP)
    alike = gap is not None and record.gap is not None and abs(record.gap - gap) <= LEAST_GAP * max(1.0, gap)
    status = Status.OPTIMAL if claimed and optimal else Status.FEASIBLE
    return replace(record, status=status.value, gap=record.gap if alike else gap)


def _finite(distance: float | None) -> float | None:
    return distance if distance is not None and math.isfinite(distance) else None


def _within(distance: float | None) -> bool:
    return distance is not None and distance <= WITHIN


def _better(record: Record, one: float | None, other: float | None, *, rising: bool = False) -> float | None:
    """Return the better of two objectives of a record's problem, or of two bounds, which get better as they rise."""
    if one is None or other is None:
        return one if other is None else other
    least = (kind_of(record.kind).problem.sense_of(record.scale) == "minimize") != rising
    return min(one, other) if least else max(one, other)


def _distance(record: Record, reference: float | None) -> float | None:
    """Return the relative distance of a record's objective to a value; None if one of them is missing."""
    if record.objective is None or reference is None:
        return None
    distance = kind_of(record.kind).problem.distance(record.objective, reference, record.scale)
    return distance if math.isfinite(distance) else math.inf
