"""Records of comparisons, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specopt.comparison.cell import Record
from specopt.comparison.store import Store


def record(
    method: str, instance: str, objective: float | None, bound: float | None = None, **fields: Any
) -> Record:
    """Return a record of a serving-latency cell, unless fields say otherwise."""
    known: dict[str, Any] = {
        "kind": "serving-latency",
        "problem_sha256": instance,
        "label": method,
        "options": {},
        "seed": 0,
        "time_limit": 10.0,
        "gap_limit": 0.0,
        "seconds": 1.0,
        "status": "none" if objective is None else "feasible",
    } | fields
    key = f"{method} {instance} {fields}"
    return Record(
        key=key, method=method, instance=instance, objective=objective, bound=bound, **known
    )


def kept(folder: Path, *records: Record) -> Path:
    """Write records to a folder, and return their file."""
    store = Store(folder)
    for one in records:
        store.append(one)
    store.close()
    (path,) = folder.glob("records-*.jsonl")
    return path
