"""Charts of plans of draft allocation."""

from __future__ import annotations

from specopt.kinds.chart import Chart, points, quantity, weight
from specopt.kinds.view import View
from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem


def charts(problem: DraftAllocationProblem, plan: DraftAllocationPlan) -> tuple[Chart, ...]:
    """Return a chart of the clients' draft tokens over their acceptance rates."""
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
            "Each point is a client; its size is the weight.",
            rows,
            x=quantity("acceptance rate", scale={"zero": False}),
            y=quantity("draft tokens", axis={"tickMinStep": 1}),
            size=weight("weight"),
        ),
    )


VIEW = View(charts=charts)
