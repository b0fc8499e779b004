"""Repeated judging of the plans in saved results."""

from __future__ import annotations

import math
from dataclasses import replace

from specopt.comparison.cell import Record
from specopt.comparison.store import Store
from specopt.comparison.table import without_refuted
from specopt.kinds import kind_of
from specopt.models.errors import InvalidInput
from specopt.models.judge import verify
from specopt.models.problem import TOLERANCE


def judged_again(store: Store) -> list[tuple[Record, list[str]]]:
    """Judge every plan in a folder using only the data of its problem, and compare with the record.

    Each record is returned with one sentence for each number that differs. Records without a plan
    are not judged.
    """
    return [(record, _differences(record, store)) for record in store.records().values()]


def _differences(record: Record, store: Store) -> list[str]:
    if record.plan is None:
        return []
    try:
        problem = store.problem(record)
        report = verify(problem, kind_of(record.kind).plan.from_dict(record.plan))
    except InvalidInput as error:
        return [str(error)]
    if report.objective is None or not report.feasible:
        return [f"plan: infeasible: {report.violations[0]}"]
    objective = record.objective
    if objective is None or not math.isclose(objective, report.objective, rel_tol=TOLERANCE):
        objective = report.objective
    judged = without_refuted(replace(record, objective=objective), report.objective, report.size)
    return [
        f"{name}: {getattr(record, name)} in the record, "
        + (
            "refuted by its plan"
            if name == "bound"
            else f"{getattr(judged, name)} by its plan and bound"
        )
        for name in ("objective", "bound", "gap", "status")
        if getattr(record, name) != getattr(judged, name)
    ]
