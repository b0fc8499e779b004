"""Sweeps written as the CSV tables that `specopt tune` reads."""

from __future__ import annotations

from specopt.instances.sweeps.source import NO_SPECULATION
from specopt.instances.sweeps.table import OPTIONAL, REQUIRED
from specopt.models.files import csv_text
from specopt.models.sweep import Measurement, Sweep


def write_csv(sweep: Sweep) -> str:
    """Return a sweep as a CSV table that reads as the same sweep, without its notes.

    Examples
    --------
    >>> from specopt.models.sweep import Condition, Point
    >>> write_csv(Sweep((Measurement(Point(Condition(8), None), 812.5),)))
    'concurrency,draft_length,output_tokens_per_second\\n8,none,812.5\\n'
    """
    rows = [_cells(one) for one in sweep.measurements]
    columns = [*REQUIRED, *(name for name in OPTIONAL if any(row.get(name) for row in rows))]
    return csv_text([columns, *([row.get(name, "") for name in columns] for row in rows)])


def _cells(one: Measurement) -> dict[str, str]:
    condition, length = one.point.condition, one.point.draft_length
    return {
        "concurrency": str(condition.concurrency),
        "draft_length": NO_SPECULATION if length is None else str(length),
        "output_tokens_per_second": ""
        if one.tokens_per_second is None
        else repr(float(one.tokens_per_second)),
        "mean_acceptance_length": ""
        if one.acceptance_length is None
        else repr(float(one.acceptance_length)),
        "context_tokens": str(condition.context_tokens) if condition.context_tokens else "",
        "workload": condition.workload,
        "drafter": one.setup.drafter,
        "mode": "" if one.setup.mode == "fixed" else one.setup.mode,
        "topk": "" if one.setup.topk == 1 else str(one.setup.topk),
        **{name: repr(float(value)) for name, value in one.also.items()},
    }
