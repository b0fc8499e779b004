"""Plans of draft allocation for reports."""

from __future__ import annotations

from specopt.kinds.chart import Chart, points, quantity, weight
from specopt.kinds.view import View
from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem


def charts(problem: DraftAllocationProblem, plan: DraftAllocationPlan) -> tuple[Chart, ...]:
    """Return the draft tokens of the clients over their acceptance."""
    columns = (
        problem.acceptance_rates.tolist(),
        problem.weights.tolist(),
        plan.draft_tokens.tolist(),
    )
    rows = [
        {"client": client, "acceptance rate": rate, "weight": weight, "draft tokens": tokens}
        for client, (rate, weight, tokens) in enumerate(zip(*columns, strict=True))
    ]
    return (
        points(
            "Draft tokens over acceptance",
            "A point is a client; larger ones weigh more.",
            rows,
            x=quantity("acceptance rate", scale={"zero": False}),
            y=quantity("draft tokens", axis={"tickMinStep": 1}),
            size=weight("weight"),
        ),
    )


VIEW = View(charts=charts)
