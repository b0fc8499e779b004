"""Plans of fair goodput for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from specopt.models.fair_goodput import FairGoodputPlan, FairGoodputProblem
from specopt.views.terminal import MOST_ROWS, line


def print_plan(problem: FairGoodputProblem, plan: FairGoodputPlan, out: Console) -> None:
    """Print the clients with their shares."""
    unit = f"tokens per {problem.per}"
    line(out, "goodput", f"{plan.goodput.sum():.6g} {unit} in all, {problem.clients:,} clients")
    line(out, "draft tokens", f"{plan.mean_draft_tokens.sum():.6g} of {problem.budget_tokens:,} per round")
    shares = "time" if problem.per == "second" else "rounds"
    line(
        out, "schedule", f"{len(plan.schedule):,} allocations by shares of {shares}, {plan.schedule.changes:,} changes"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("  client", "acceptance", unit, "mean drafts"):
        table.add_column(header, justify="right")
    columns = (problem.acceptance_rates, plan.goodput, plan.mean_draft_tokens)
    for client, (rate, goodput, drafts) in enumerate(zip(*(c[:MOST_ROWS].tolist() for c in columns), strict=True)):
        table.add_row(str(client), f"{rate:.4g}", f"{goodput:.6g}", f"{drafts:.4g}")
    out.print(table)
    if problem.clients > MOST_ROWS:
        out.print(f"  ... and {problem.clients - MOST_ROWS:,} more clients")
