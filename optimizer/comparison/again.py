"""Judge the plans of kept results again, as a reviewer asks."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.comparison.cell import Record
from specopt.comparison.store import Store
from specopt.comparison.table import LEAST_GAP
from specopt.kinds import kind_of
from specopt.models.errors import InvalidInput
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


def _alike(one: float | None, other: float | None, rounding: float) -> bool:
    return one is other if one is None or other is None else abs(one - other) <= rounding
