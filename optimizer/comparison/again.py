"""Judge kept results anew, and solve one of them again: what a reviewer asks of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.api.arguments import option_types
from specopt.api.solve import choose, method_named
from specopt.comparison.cell import Cell, Record
from specopt.comparison.executors import local_executor
from specopt.comparison.run import run_cell
from specopt.comparison.sources import sources_of
from specopt.comparison.store import Store
from specopt.comparison.table import LEAST_GAP
from specopt.kinds import kind_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import read
from specopt.models.judge import proof_of, verify
from specopt.models.problem import TOLERANCE
from specopt.models.result import Status


@dataclass(frozen=True)
class Judged:
    """A record, and what the judge says of it today.

    Parameters
    ----------
    record
        As it is kept.
    judged
        Whether it has a plan; those of failures, of proofs that there is none, and of earlier versions have none.
    differences
        Which numbers differ, a sentence each.
    """

    record: Record
    judged: bool
    differences: tuple[str, ...] = ()


def judged_again(store: Store) -> list[Judged]:
    """Judge every plan in a folder from its problem's data alone, and compare the numbers with those of its record."""
    found = []
    for record in store.records().values():
        wrong = () if record.plan is None else tuple(_differences(record, store))
        found.append(Judged(record, record.plan is not None, wrong))
    return found


def _differences(record: Record, store: Store) -> list[str]:
    assert record.plan is not None, "the caller has asked"
    try:
        problem = store.problem(record)
        report = verify(problem, kind_of(record.kind).plan.from_dict(record.plan))
    except InvalidInput as error:
        return [str(error)]
    if report.objective is None or not report.feasible:
        return [f"plan: infeasible: {report.violations[0]}"]
    found = []
    if not _alike(record.objective, report.objective, TOLERANCE * abs(report.objective)):
        found.append(f"objective: {record.objective} in the record, {report.objective} by the judge")
    proof = proof_of(type(problem), report.objective, record.bound, LEAST_GAP, problem.scale, report.size)
    if proof.refuted:
        return [*found, f"bound: {record.bound} in the record, refuted by its plan of {report.objective}"]
    if not _alike(record.gap, proof.gap, LEAST_GAP * max(1.0, proof.gap or 0.0)):
        found.append(f"gap: {record.gap} in the record, {proof.gap} by its plan and bound")
    if record.status == Status.OPTIMAL and (proof.gap is None or proof.gap > max(record.gap_limit, LEAST_GAP)):
        found.append("status: optimal in the record, but its bound does not prove it")
    return found


def solved_again(store: Store, key: str) -> tuple[Record, Record]:
    """Solve a cell of a folder again, here and now, with its method, options, limits and seed.

    Parameters
    ----------
    store
        The folder.
    key
        Of the cell, or how it begins.

    Returns
    -------
    The record that is kept, and the one of today, which is not.

    Raises
    ------
    InvalidInput
        If no cell or more than one begins so, or its problem or method is not there.
    """
    records = [record for found, record in store.records().items() if found.startswith(key)]
    if len(records) != 1:
        names = ", ".join(f"{one.key} ({one.label} on {one.instance})" for one in records[:5])
        raise InvalidInput(f"--rerun: expected the key of one cell, got {key!r}, with which {names or 'none'} begins")
    record = records[0]
    problem = store.problem(record)
    method = method_named(record.kind, record.method)
    if method is None:
        raise InvalidInput(f"--rerun: {record.kind} has no method {record.method!r} here")
    types = option_types(method)
    if unknown := sorted(record.options.keys() - types.keys()):
        raise InvalidInput(f"--rerun: {record.method} has no option {unknown[0]!r} here")
    options = {name: read(types[name], value, name) for name, value in record.options.items()}
    chosen = choose(problem, method(**options))
    limits = (record.time_limit, record.gap_limit, record.seed)
    cell = Cell.of(record.instance, problem, chosen, *limits, sources_of(method))
    with local_executor(1) as executor:
        return record, executor.submit(run_cell, cell).result()


def same_objective(old: Record, new: Record) -> bool:
    """Return whether two records have the same objective, but for rounding, and the same kind of answer without one."""
    if old.objective is None or new.objective is None:
        return old.objective is new.objective and old.status == new.status
    return _alike(old.objective, new.objective, TOLERANCE * abs(old.objective))


def _alike(one: float | None, other: float | None, rounding: float) -> bool:
    return one is other if one is None or other is None else abs(one - other) <= rounding
