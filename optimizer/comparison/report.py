"""A comparison for people: a table per kind of problem, who wins where, and what failed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from specopt.comparison.summary import SHIFT_SECONDS, summaries, who_wins
from specopt.comparison.table import Comparison
from specopt.kinds import kind_of
from specopt.views.terminal import percent, sentence, table

MOST_FAILURES = 10


def print_comparison_summary(comparison: Comparison, out: Console, left_out: Sequence[str] = ()) -> None:
    """Print the summary of a comparison, and the instances that were left out of it."""
    rows = summaries(comparison)
    for kind in dict.fromkeys(row.kind for row in rows):
        mine = [row for row in rows if row.kind == kind]
        problems = len({record.problem_sha256 for record in comparison if record.kind == kind})
        out.print(Text(f"{kind}: {problems} instances", style="bold"))
        headers = ["cells", "failed", "no plan", "best plan", "proven", "mean gap", "largest gap", "time (s)"]
        maximised = kind_of(kind).problem.sense == "maximize"
        if maximised:
            headers.insert(7, "shortfall")
        view = table("  method", *headers, left=1)
        for row in mine:
            view.add_row(
                f"  {row.label}",
                str(row.cells),
                Text(str(row.failed), style="red" if row.failed else ""),
                str(row.without_plan),
                f"{100 * row.wins:.0f} %",
                f"{100 * row.proven:.0f} %",
                "" if row.mean_gap is None else percent(row.mean_gap),
                "" if row.largest_gap is None else percent(row.largest_gap),
                *(["" if row.mean_shortfall is None else percent(row.mean_shortfall)] * maximised),
                f"{row.seconds:.3g}",
            )
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
        "time limit.",
        soft_wrap=True,
    )
    if left_out:
        names = ", ".join(left_out[:MOST_FAILURES]) + (", ..." if len(left_out) > MOST_FAILURES else "")
        sentence(out, f"{len(left_out)} instances that none of the methods takes: {names}")
    failures = [record for record in comparison if record.error is not None]
    for record in failures[:MOST_FAILURES]:
        word = "failed" if record.failed else "refuted"
        sentence(out, f"{word}: {record.label} on {record.instance}, seed {record.seed}: {record.error}")
    if len(failures) > MOST_FAILURES:
        out.print(f"... and {len(failures) - MOST_FAILURES} more failures and refutations (`error` in the table)")
