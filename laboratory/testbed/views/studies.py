"""Studies of recorded drafts as tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console

from specopt.console.terminal import sentence, table_of
from testbed.recorded import RecordedDrafts
from testbed.studies.clients import clients
from testbed.studies.costs import Costs
from testbed.studies.quantising import quantising
from testbed.studies.resampling import Interval
from testbed.studies.run_lengths import run_lengths
from testbed.studies.stopping import stopping


def studies_of(log: RecordedDrafts, costs: Costs) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all studies as JSON-like data."""
    return {
        "run lengths": [
            asdict(row)
            | {
                "errors": row.errors,
                "best_length": row.best_length(costs, geometric=False),
                "best_length_by_the_law": row.best_length(costs, geometric=True),
                "lost_by_the_law": row.lost_by_the_law(costs),
            }
            for row in run_lengths(log)
        ],
        "clients": [asdict(row) | {"drifts": row.drifts} for row in clients(log)],
        "stopping": [
            asdict(row)
            for knows_history in (False, True)
            for row in stopping(log, costs, knows_history=knows_history)
        ],
        "quantising": [asdict(row) for row in quantising(log)],
    }


def print_studies(found: dict[str, list[dict[str, Any]]], out: Console) -> None:
    """Print a table for each study."""
    for name, rows in found.items():
        sentence(out, f"{name}", style="bold")
        out.print(
            table_of(
                [{key.replace("_", " "): value for key, value in row.items()} for row in rows],
                _cell,
            )
        )
        out.print()


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        known = Interval(**value)
        return f"{known.value:.3f} [{known.low:.3f}, {known.high:.3f}]"
    if isinstance(value, tuple):
        return " ".join(map(_cell, value))
    return f"{value:.3f}" if isinstance(value, float) else str(value)
