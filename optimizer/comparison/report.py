"""A comparison for people: a table per kind of problem, who wins where, and what failed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from specopt.comparison.summary import SHIFT_SECONDS, TEST_SETS, MethodSummary, summaries, swept_cells, who_wins
from specopt.comparison.table import Comparison
from specopt.kinds import kind_of
from specopt.views.terminal import percent, sentence, table

MAX_FAILURES = 10


def print_comparison_summary(comparison: Comparison, out: Console, left_out: Sequence[str] = ()) -> None:
    """Print the summary of a comparison, and the instances that were left out of it."""
    rows = summaries(comparison)
    for kind in dict.fromkeys(row.kind for row in rows):
        mine = [row for row in rows if row.kind == kind]
        problems = len({record.problem_sha256 for record in comparison if record.kind == kind})
        out.print(Text(f"{kind}: {problems} instances", style="bold"))
        for columns in (_of_common, _of_all):
            cells = [columns(row) for row in mine]
            view = table("  method", *swept_cells(mine[0], mine), *cells[0], left=1)
            for row, shown in zip(mine, cells, strict=True):
                view.add_row(f"  {row.label}", *swept_cells(row, mine).values(), *shown.values())
            out.print(view)
        out.print()
    families = who_wins(comparison)
    if len(families) > 1:
        out.print(Text("Who has the best plan where (share of cells)", style="bold"))
        for family, shares in families.items():
            winners = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
            text = ", ".join(f"{label} {100 * share:.0f} %" for label, share in winners if share > 0)
            sentence(out, f"  {family}: {text or 'nobody'}")
        out.print()
    out.print(
        "Gap: |objective - bound| / |objective|, to the best bound of any method, here or in the instance library; "
        "shortfall: (bound - objective) / bound, its mean; "
        f"proven: optimal by that bound; time: shifted geometric mean (shift {SHIFT_SECONDS:g} s), failures at their "
        f"time limit. {TEST_SETS}",
        soft_wrap=True,
    )
    if left_out:
        names = ", ".join(left_out[:MAX_FAILURES]) + (", ..." if len(left_out) > MAX_FAILURES else "")
        sentence(out, f"{len(left_out)} instances that none of the methods takes: {names}")
    failures = [record for record in comparison if record.error is not None]
    for record in failures[:MAX_FAILURES]:
        word = "failed" if record.failed else "refuted"
        sentence(out, f"{word}: {record.label} on {record.instance}, seed {record.seed}: {record.error}")
    if len(failures) > MAX_FAILURES:
        out.print(f"... and {len(failures) - MAX_FAILURES} more failures and refutations (`error` in the table)")


def _of_common(row: MethodSummary) -> dict[str, str | Text]:
    shares = {"mean gap": row.mean_gap, "largest gap": row.largest_gap}
    if kind_of(row.kind).problem.sense == "maximize":
        shares["shortfall"] = row.mean_shortfall
    return {
        "common cells": str(row.cells),
        "best plan": _share(row.wins),
        "proven": _share(row.proven),
        **{name: "" if share is None else percent(share) for name, share in shares.items()},
        "time (s)": "" if row.seconds is None else f"{row.seconds:.3g}",
    }


def _of_all(row: MethodSummary) -> dict[str, str | Text]:
    return {
        "all cells": str(row.all_cells),
        "refused": str(row.refused),
        "failed": Text(str(row.failed), style="red" if row.failed else ""),
        "no plan": str(row.without_plan),
        "best plan": _share(row.all_wins),
        "proven": _share(row.all_proven),
    }


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
