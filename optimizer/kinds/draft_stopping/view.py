"""Display of draft-stopping plans, as text and as a chart."""

from __future__ import annotations

from specopt.console.terminal import MAX_ROWS, Console, line, print_first, table
from specopt.kinds.chart import MAX_MARKS, TOOLTIP, Chart, category, layer
from specopt.kinds.view import View
from specopt.models.draft_stopping.problem import STOP, DraftStoppingPlan, DraftStoppingProblem

MAX_SCORES = 8
"""Maximum number of scores to print per node."""

DRAFTING, STOPPING = "draft another token", "stop and verify"
"""Labels of the two possible actions after a score, as shown in the legend of the chart."""


def print_plan(problem: DraftStoppingProblem, plan: DraftStoppingPlan, out: Console) -> None:
    """Print a plan as a table that shows the next node for each node and score."""
    if plan.start == STOP:
        line(out, "drafts", "none")
        return
    shown = min(problem.scores.bins, MAX_SCORES)
    view = table("  after a token of node", *(f"score {score}" for score in range(shown)))
    for node, goes in enumerate(plan.next.rows[:MAX_ROWS, :shown].tolist()):
        start = " (start)" if node == plan.start else ""
        view.add_row(f"{node}{start}", *("stop" if to == STOP else to for to in goes))
    print_first(out, view, len(plan.next), "nodes")
    if shown < problem.scores.bins:
        line(out, "scores", f"{shown} of {problem.scores.bins} shown")


def charts(problem: DraftStoppingProblem, plan: DraftStoppingPlan) -> tuple[Chart, ...]:
    """Return a chart that shows, for each node and score, whether drafting continues or stops."""
    goes = plan.next.rows if plan.start != STOP else plan.next.rows[:0]
    rows = [
        {
            "node": node,
            "score": score,
            "action": STOPPING if to == STOP else DRAFTING,
            "next node": None if to == STOP else to,
        }
        for node, targets in enumerate(goes.tolist())
        for score, to in enumerate(targets)
    ][:MAX_MARKS]
    scale = {"domain": [DRAFTING, STOPPING], "range": ["var(--series-0)", "var(--series-1)"]}
    marks = layer(
        {"type": "rect", "tooltip": TOOLTIP},
        x=category("score", axis={"labelAngle": 0}),
        y=category("node", axis={"labelOverlap": True, "ticks": False}),
        color=category("action", title=None, scale=scale),
    )
    note = "The next node of a node is always further down."
    return (Chart(title="Draft or stop, by node and score", note=note, rows=rows, spec=marks),)


VIEW = View(print_plan=print_plan, charts=charts)
