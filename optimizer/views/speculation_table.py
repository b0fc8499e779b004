"""Display of a speculation table as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from specopt.console.terminal import sentence
from specopt.console.terminal import table as grid
from specopt.models.acceptance_lengths import Acceptance
from specopt.models.position_acceptance import PositionAcceptance
from specopt.solvers.speculation_table.table import SpeculationTable


def print_speculation_table(
    table: SpeculationTable,
    acceptance: Acceptance,
    config: Mapping[str, Any] | None,
    advice: Sequence[str],
    out: Console,
) -> None:
    """Print the acceptance, the draft lengths and speed-ups, and the engine configuration."""
    if isinstance(acceptance, PositionAcceptance):
        head, values = (
            f"Acceptance by position{' (the last for all others)' if acceptance.extends else ''}",
            acceptance.rates,
        )
    else:
        head = f"Tokens of a step by draft length ({', '.join(map(str, acceptance.lengths))})"
        values = acceptance.tokens
    known = ", ".join(
        f"{value:.3f}" if low == high else f"{value:.3f} ({low:.3f}-{high:.3f})"
        for value, low, high in zip(values, acceptance.lower, acceptance.upper, strict=True)
    )
    out.print(f"{head}: {known}", soft_wrap=True)
    case = "best in the worst case" if table.robust else "goodput-optimal"
    out.print(f"Speculation length, {case}, up to {table.most_drafts} drafts:\n")
    view = grid("batch size", "drafts", "speed-up", "within limits", "largest loss", gap=3)
    limits = table.speedup_limits or (None,) * len(table.ranges)
    for drafted, speedup, limit, loss in zip(
        table.ranges, table.speedup, limits, table.loss, strict=True
    ):
        view.add_row(
            *range_cells(*drafted),
            f"{speedup:.2f}",
            "" if limit is None else f"{limit[0]:.2f}-{limit[1]:.2f}",
            f"{100 * loss:.1f} %",
        )
    out.print(view)
    print_configuration(config, (*table.notes, *advice), out)


def range_cells(low: int, high: int, drafts: int | None) -> tuple[str, str]:
    """Return the texts for the batch sizes and the draft length of a range."""
    sizes = f"{low}-{high}" if low < high else str(low)
    return sizes, "none" if drafts is None else str(drafts)


def print_configuration(
    config: Mapping[str, Any] | None, notes: Sequence[str], out: Console
) -> None:
    """Print notes and the configuration of an engine.

    The configuration is None if the engine should not speculate.
    """
    for note in notes:
        out.print()
        sentence(out, f"Note: {note}.")
    if config is not None:
        out.print("\nConfiguration:", soft_wrap=True)
        out.print(json.dumps(config), soft_wrap=True)
