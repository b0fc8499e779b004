"""A tuned speculation table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from specopt.solvers.speculation_table.tuning.tuning import Tuning
from specopt.views.speculation_table import print_configuration
from specopt.views.terminal import table

_COLUMNS = 9  # as many fit a terminal; of more, those that were measured or are taken


def print_tuning(tuning: Tuning, config: Mapping[str, Any] | None, advice: Sequence[str], out: Console) -> None:
    """Print the ranges with what they are worth, throughput by option, notes and the engine's configuration."""
    grid = tuning.grid
    ranges = table("batch size", "drafts", "speed-up", "band", "decided at", gap=3)
    for drafted in tuning.schedule.ranges:
        low, high, drafts = drafted
        mean, least, most = tuning.worth(drafted)
        deciding = tuning.deciding(drafted)
        ranges.add_row(
            f"{low}-{high}" if low < high else str(low),
            "none" if drafts is None else str(drafts),
            f"{mean:.2f}",
            f"{least:.2f}-{most:.2f}",
            f"{deciding[0][0]}: {_name(deciding[0][1])} against {_name(deciding[1][1])}" if deciding else "",
        )
    out.print(ranges)
    rows = [grid.row(c) for c in tuning.concurrencies]
    taken = {tuning.option(c) for c in tuning.concurrencies}
    options = [k for k in range(grid.mean.shape[1]) if tuning.is_option(k)]
    shown = [k for k in options if k in taken or grid.measured[rows, k].any()]
    columns = options if len(options) <= _COLUMNS else shown
    out.print("\nOutput tokens per second (* chosen, ~ predicted, not measured):\n")
    throughput = table("concurrency", *(_name(k) for k in columns), gap=3)
    for concurrency in tuning.concurrencies:
        row = grid.row(concurrency)
        throughput.add_row(
            str(concurrency),
            *(
                f"{'' if grid.measured[row, k] else '~'}{grid.mean[row, k]:.4g}"
                f"{'*' if k == tuning.option(concurrency) else ' '}"
                for k in columns
            ),
        )
    out.print(throughput)
    out.print(f"\nAt most {tuning.regret_bound:.1%} lost against the best option at any of these.", soft_wrap=True)
    print_configuration(config, (*tuning.notes, *advice), out)


def _name(column: int) -> str:
    return "none" if column == 0 else str(column - 1)
