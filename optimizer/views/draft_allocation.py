"""Plans of draft allocation for reports."""

from __future__ import annotations

from specopt.models.draft_allocation import DraftAllocationPlan, DraftAllocationProblem
from specopt.views.chart import MOST_MARKS, Chart, quantity
from specopt.views.view import View


def charts(problem: DraftAllocationProblem, plan: DraftAllocationPlan) -> tuple[Chart, ...]:
    """Return the draft tokens of the clients over their acceptance."""
    columns = (problem.acceptance_rates.tolist(), problem.weights.tolist(), plan.draft_tokens.tolist())
    rows = [
        {"client": client, "acceptance rate": rate, "weight": weight, "draft tokens": tokens}
        for client, (rate, weight, tokens) in enumerate(zip(*columns, strict=True))
    ]
    return (
        Chart(
            title="Draft tokens over acceptance",
            note="A point is a client; larger ones weigh more.",
            rows=rows[:MOST_MARKS],
            spec={
                "mark": {"type": "point", "filled": True, "opacity": 0.7, "tooltip": {"content": "data"}},
                "encoding": {
                    "x": quantity("acceptance rate", scale={"zero": False}),
                    "y": quantity("draft tokens", axis={"tickMinStep": 1}),
                    "size": quantity("weight", scale={"range": [30, 300]}, legend=None),
                },
            },
        ),
    )


VIEW = View(charts=charts)
