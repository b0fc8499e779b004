"""Display of a tuned speculation table as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from specopt.console.terminal import table, table_of
from specopt.solvers.speculation_table.tuning.options import Options
from specopt.solvers.speculation_table.tuning.tuning import Tuning
from specopt.views.speculation_table import print_configuration, range_cells

_TABLES = {
    "options": "Options",
    "capacity": (
        "Capacity: most requests at a time that meet the target and fit, with limits (+: and more)"
    ),
    "classes": "Each workload for itself (lost: with the answer for all)",
    "front": "Best in speed or in energy",
}
_COLUMNS = 9
"""Maximum number of columns that fit on a terminal.

If there are more draft lengths, only the measured and the chosen lengths are shown.
"""


def print_tuning(options: Options, data: Mapping[str, Any], unit: str, out: Console) -> None:
    """Print the draft lengths with their speed-ups, the throughput by option, notes and the engine
    configuration.
    """
    tuning = options.best
    if data["option"]:
        out.print(f"Drafter: {_shown(data['option'])}\n", soft_wrap=True)
    grid = tuning.grid
    ranges = table("batch size", "drafts", "speed-up", "band", gap=3)
    for drafted in tuning.schedule.ranges:
        mean, least, most = tuning.worth(drafted)
        ranges.add_row(
            *range_cells(*drafted),
            f"{mean:.2f}",
            f"{least:.2f}-{most:.2f}",
        )
    out.print(ranges)
    rows = [grid.row(c) for c in tuning.concurrencies]
    taken = {tuning.option(c) for c in tuning.concurrencies}
    known = [k for k in range(grid.mean.shape[1]) if tuning.is_option(k)]
    shown = [k for k in known if k in taken or grid.measured[rows, k].any()]
    columns = known if len(known) <= _COLUMNS else shown
    out.print(f"\n{unit.capitalize()} (* chosen, ~ predicted, not measured):\n")
    throughput = table("concurrency", *(name_of(k) for k in columns), gap=3)
    for concurrency in tuning.concurrencies:
        row = grid.row(concurrency)
        throughput.add_row(
            concurrency,
            *(
                f"{'' if grid.measured[row, k] else '~'}{grid.mean[row, k]:.4g}"
                f"{'*' if k == tuning.option(concurrency) else ' '}"
                for k in columns
            ),
        )
    out.print(throughput)
    for key, head in _TABLES.items():
        if data.get(key):
            out.print(f"\n{head}:\n", soft_wrap=True)
            out.print(table_of(_plain(data[key])))
    _print_break_even(tuning, out)
    if second := data.get("second"):
        where = ", ".join(
            f"{one['workload']} {one['concurrency']}".strip() for one in second["better"][:8]
        )
        out.print(
            f"\nA second deployment, {_shown(second)}, for {where}: {second['gain']:+.1%}.",
            soft_wrap=True,
        )
    out.print(
        f"\nAt most {options.regret_bound:.1%} lost against the best option at any of these.",
        soft_wrap=True,
    )
    print_configuration(data["config"], data["notes"], out)


def _print_break_even(tuning: Tuning, out: Console) -> None:
    """Print the acceptance above which each measured draft length pays off."""
    found = tuning.break_even
    if not found:
        return
    lengths = sorted({one["draft_length"] for one in found})
    known = {(one["concurrency"], one["draft_length"]): one for one in found}
    out.print(
        "\nPays from this many tokens of a step on (x: from this share of today's):\n",
        soft_wrap=True,
    )
    view = table("concurrency", *map(str, lengths), gap=3)
    for c in tuning.concurrencies:
        view.add_row(c, *(_pays(known.get((c, length), {})) for length in lengths))
    out.print(view)


def _plain(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without columns that carry no information."""
    kept = [
        key
        for key in rows[0]
        if key != "at_least" and any(row[key] not in ("", "fixed", 1) for row in rows)
    ]
    return [
        {key.replace("_", " "): _load(row) if key == "concurrency" else row[key] for key in kept}
        for row in rows
    ]


def _load(row: Mapping[str, Any]) -> str:
    return f"{row['concurrency']}{'+' if row.get('at_least') else ' '}".rjust(len("concurrency"))


def _pays(one: Mapping[str, Any]) -> str:
    if "acceptance_length" in one:
        return f"{one['acceptance_length']:.2f}"
    return f"{one['factor']:.2f}x" if one else ""


def _shown(setup: Mapping[str, Any]) -> str:
    mode = "" if setup["mode"] == "fixed" else f", {setup['mode']}"
    return (
        (setup["drafter"] or "unnamed")
        + mode
        + ("" if setup["topk"] == 1 else f", topk {setup['topk']}")
    )


def name_of(column: int) -> str:
    """Return the draft length that corresponds to a column of throughputs, in words."""
    return "none" if column == 0 else str(column - 1)
