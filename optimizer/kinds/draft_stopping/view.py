"""Plans of draft stopping for the terminal."""

from __future__ import annotations

from rich.console import Console

from specopt.console.terminal import MAX_ROWS, cut, line, table
from specopt.kinds.view import View
from specopt.models.draft_stopping.problem import STOP, DraftStoppingPlan, DraftStoppingProblem

MAX_SCORES = 8


def print_plan(problem: DraftStoppingProblem, plan: DraftStoppingPlan, out: Console) -> None:
    """Print where each node goes on each score."""
    if plan.start == STOP:
        line(out, "drafts", "nothing")
        return
    shown = min(problem.scores.bins, MAX_SCORES)
    view = table("  after a token of node", *(f"score {score}" for score in range(shown)))
    for node, goes in enumerate(plan.next.rows[:MAX_ROWS, :shown].tolist()):
        start = " (start)" if node == plan.start else ""
        view.add_row(f"{node}{start}", *("stop" if to == STOP else str(to) for to in goes))
    out.print(view)
    cut(out, len(plan.next), "nodes")
    if shown < problem.scores.bins:
        line(out, "scores", f"{shown} of {problem.scores.bins} shown")


VIEW = View(print_plan=print_plan)
