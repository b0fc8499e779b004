"""Text display of computed and tuned speculation tables, and of validated predictions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from specopt.console.terminal import Console, sentence, table, table_of
from specopt.models.acceptance_lengths import Acceptance
from specopt.models.position_acceptance import PositionAcceptance
from specopt.solvers.speculation_table.table import SpeculationTable

if TYPE_CHECKING:  # imported late, because only tuned tables need them
    from specopt.solvers.speculation_table.tuning.options import Options
    from specopt.solvers.speculation_table.tuning.tuning import Tuning

SMALL = 0.02
"""Relative change in throughput below which no correction is shown."""

_TABLES = {
    "options": "Options",
    "capacity": (
        "Capacity: largest number of concurrent requests that meets the target and fits in memory,"
        " with limits (+: or more)"
    ),
    "classes": "Each workload for itself (lost: with the answer for all)",
    "front": "Best in speed or in energy",
}
_COLUMNS = 9
"""Maximum number of columns that fit on a terminal.

If there are more draft lengths, only the measured and the chosen lengths are shown.
"""


def print_speculation_table(
    found: SpeculationTable,
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
    case = "best in the worst case" if found.robust else "goodput-optimal"
    out.print(f"Speculation length, {case}, up to {found.most_drafts} drafts:\n")
    view = table("batch size", "drafts", "speed-up", "within limits", "largest loss", gap=3)
    limits = found.speedup_limits or (None,) * len(found.ranges)
    for drafted, speedup, limit, loss in zip(
        found.ranges, found.speedup, limits, found.loss, strict=True
    ):
        view.add_row(
            *range_cells(*drafted),
            f"{speedup:.2f}",
            "" if limit is None else f"{limit[0]:.2f}-{limit[1]:.2f}",
            f"{100 * loss:.1f} %",
        )
    out.print(view)
    print_configuration(config, (*found.notes, *advice), out)


def range_cells(low: int, high: int, drafts: int | None) -> tuple[str, str]:
    """Return strings that describe a range of batch sizes and its draft length."""
    sizes = f"{low}-{high}" if low < high else str(low)
    return sizes, "none" if drafts is None else str(drafts)


def print_configuration(
    config: Mapping[str, Any] | None, notes: Sequence[str], out: Console
) -> None:
    """Print notes and an engine's configuration.

    The configuration is None if the engine should not speculate.
    """
    for note in notes:
        out.print()
        sentence(out, f"Note: {note}.")
    if config is not None:
        out.print("\nConfiguration:", soft_wrap=True)
        out.print(json.dumps(config), soft_wrap=True)


def print_tuning(options: Options, data: Mapping[str, Any], unit: str, out: Console) -> None:
    """Print the draft lengths and their speed-ups.

    The throughput by option, notes and the engine configuration are printed as well.
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
        "\nBreak-even tokens per step (x: relative to the present value):\n",
        soft_wrap=True,
    )
    view = table("concurrency", *map(str, lengths), gap=3)
    for c in tuning.concurrencies:
        view.add_row(c, *(_pays(known.get((c, length), {})) for length in lengths))
    out.print(view)


def _plain(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a copy of the rows without columns that carry no information."""
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
    """Return the draft length of a throughput column as a string.

    The string is "none" for column 0, which contains the throughput without speculation.
    """
    return "none" if column == 0 else str(column - 1)


def print_validation(data: Mapping[str, Any], out: Console) -> None:
    """Print predicted and measured throughput, the ranking of the options, and the corrections."""
    out.print(table_of(data["loads"]))
    order = data["order"]
    rest = (
        "" if order["pairs"] else ": start the server with another draft length, and run it again"
    )
    out.print()
    sentence(out, f"Tokens per second; the median error is {data['median_error']:.1%}.")
    shown = (
        f"{order['right']} of {order['separated']} pairs that the intervals tell apart are as"
        f" predicted{rest}."
    )
    sentence(out, f"Order of options: {shown}")
    for note in data["notes"]:
        sentence(out, f"At {note}.")
    if data["acceptance"]:
        columns = (data["acceptance"][name] for name in ("acceptance_rates", "lower", "upper"))
        rates = ", ".join(
            f"{one:.3f} ({low:.3f}-{high:.3f})" for one, low, high in zip(*columns, strict=True)
        )
        sentence(out, f"Acceptance by position: {rates}.")
    out.print("\nMeasured over predicted, and where to correct it:\n")
    rows = [
        row | {"in": row["in"] if abs(row["output"]) > SMALL else "as predicted"}
        for row in data["factors"]
    ]
    out.print(table_of(rows))
