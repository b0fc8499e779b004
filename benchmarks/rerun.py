"""Solve a cell of a comparison's folder again with the same method, options, limits and seed, and
print both records.

    python benchmarks/rerun.py FOLDER CELL

CELL is the key of the cell, or its beginning. The new record is not kept. The exit code is 1 if the
objectives differ.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math

from specopt.api.arguments import option_types
from specopt.api.solve import choose, method_named
from specopt.comparison.cell import Cell, Record
from specopt.comparison.processes import Workers, run_cell
from specopt.comparison.sources import sources_of
from specopt.comparison.store import Store, opened
from specopt.models.errors import InvalidInput
from specopt.models.fields import read
from specopt.models.problem import TOLERANCE


def record_of(store: Store, key: str) -> Record:
    """Return the record whose key begins with the given text.

    Raises
    ------
    InvalidInput
        If no key or more than one begins with it.
    """
    records = [record for found, record in store.records().items() if found.startswith(key)]
    if len(records) != 1:
        names = ", ".join(f"{one.key} ({one.label} on {one.instance})" for one in records[:5])
        raise InvalidInput(
            f"CELL: expected the key of one cell, got {key!r}, with which {names or 'none'} begins"
        )
    return records[0]


def solved_again(record: Record, store: Store) -> Record:
    """Solve the cell of a record on this machine.

    Raises
    ------
    InvalidInput
        If its problem, its method or one of its options does not exist on this machine.
    """
    problem = store.problem(record)
    method = method_named(record.kind, record.method)
    types = {} if method is None else option_types(method)
    if method is None or not record.options.keys() <= types.keys():
        raise InvalidInput(f"{record.kind} has no method {record.label} here")
    options = {name: read(types[name], value, name) for name, value in record.options.items()}
    limits = (record.time_limit, record.gap_limit, record.seed)
    chosen = choose(problem, method(**options))
    cell = Cell.of(record.instance, problem, chosen, *limits, sources_of(method))
    with contextlib.closing(Workers()) as workers:
        return run_cell(cell, workers=workers)


def same_objective(old: Record, new: Record) -> bool:
    """Return whether two records have the same objective up to rounding, or the same kind of answer
    without an objective.
    """
    if old.objective is None or new.objective is None:
        return old.objective is new.objective and old.status == new.status
    return math.isclose(old.objective, new.objective, rel_tol=TOLERANCE)


def main(arguments: list[str] | None = None) -> int:
    """Print both records, and return whether their objectives differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("folder", metavar="FOLDER", help="kept results of specopt compare")
    parser.add_argument("cell", metavar="CELL", help="key of a cell, or how it begins")
    given = parser.parse_args(arguments)
    store = opened(given.folder)
    old = record_of(store, given.cell)
    new = solved_again(old, store)
    print(json.dumps([old.to_dict(), new.to_dict()], indent=2))
    return 0 if same_objective(old, new) else 1


if __name__ == "__main__":
    raise SystemExit(main())
