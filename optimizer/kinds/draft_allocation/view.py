"""Display of draft-allocation plans as charts."""

from __future__ import annotations

from specopt.kinds.chart import Chart, points, quantity, rows_of, weight
from specopt.kinds.view import View
from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem


def charts(problem: DraftAllocationProblem, plan: DraftAllocationPlan) -> tuple[Chart, ...]:
    """Return a chart that plots each client's draft tokens against its acceptance rate."""
    columns = {
        "acceptance rate": problem.acceptance_rates,
        "weight": problem.weights,
        "draft tokens": plan.draft_tokens,
    }
    return (
        points(
            "Draft tokens over acceptance",
            "Each point is a client; its size is the weight.",
            rows_of("client", columns),
            x=quantity("acceptance rate", scale={"zero": False}),
            y=quantity("draft tokens", axis={"tickMinStep": 1}),
            size=weight("weight"),
        ),
    )


VIEW = View(charts=charts)
