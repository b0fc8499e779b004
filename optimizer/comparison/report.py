"""Printing of a comparison's summary: a table per kind of problem, wins by family, and failures."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from specopt.comparison.summary import SHIFT_SECONDS, TEST_SETS, shown, tables_of, who_wins
from specopt.comparison.table import Comparison
from specopt.console.terminal import Console, sentence, table_of

MAX_FAILURES = 10
"""Maximum number of failures to list. The same limit applies to unsolved instances."""


def print_comparison_summary(
    comparison: Comparison, out: Console, left_out: Sequence[str] = ()
) -> None:
    """Print the summary of a comparison, and list the instances that no method can solve."""
    for title, rows in tables_of(comparison).items():
        out.print(Text(title, style="bold"))
        columns = list(rows[0])
        common = columns.index("common")
        every = columns.index("all")
        for part in (columns[:every], columns[:common] + columns[every:]):
            out.print(table_of([{name: row[name] for name in part} for row in rows], shown))
        out.print()
    families = who_wins(comparison)
    if len(families) > 1:
        out.print(Text("Share of cells with the best plan, by family", style="bold"))
        for family, shares in families.items():
            winners = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
            text = ", ".join(
                f"{label} {100 * share:.0f} %" for label, share in winners if share > 0
            )
            sentence(out, f"  {family}: {text or 'none'}")
        out.print()
    out.print(
        "Gap: |objective - bound| / |objective|, to the best bound of any method, here or in the"
        " instance library. Proven: optimal by that bound. Time: shifted geometric mean (shift"
        f" {SHIFT_SECONDS:g} s), failures at their time limit. {TEST_SETS}",
        soft_wrap=True,
    )
    if left_out:
        names = ", ".join(left_out[:MAX_FAILURES]) + (
            ", ..." if len(left_out) > MAX_FAILURES else ""
        )
        sentence(out, f"{len(left_out)} instances that none of the methods can solve: {names}")
    failures = [record for record in comparison if record.error is not None]
    for record in failures[:MAX_FAILURES]:
        word = "failed" if record.failed else "refuted"
        sentence(
            out, f"{word}: {record.label} on {record.instance}, seed {record.seed}: {record.error}"
        )
    if len(failures) > MAX_FAILURES:
        out.print(
            f"... and {len(failures) - MAX_FAILURES} more failures and refutations (`error` in the"
            " table)"
        )
