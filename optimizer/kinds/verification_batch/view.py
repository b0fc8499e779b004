"""Charts of plans of verification batching."""

from __future__ import annotations

from specopt.kinds.chart import Chart, category, points, quantity
from specopt.kinds.view import View
from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)


def charts(problem: VerificationBatchProblem, plan: VerificationBatchPlan) -> tuple[Chart, ...]:
    """Return a chart of the requests by expected tokens and deadline, coloured by their membership
    in the batch.
    """
    chosen = set(plan.batch.tolist())
    columns = (
        problem.expected_tokens.tolist(),
        (problem.deadline_seconds - problem.now_seconds).tolist(),
        problem.new_tokens.tolist(),
        problem.cached_tokens.tolist(),
    )
    rows = [
        {
            "request": request,
            "taken": "in the batch" if request in chosen else "left out",
            "expected tokens": expected,
            "due in (s)": due,
            "new tokens": new,
            "cached tokens": cached,
        }
        for request, (expected, due, new, cached) in enumerate(zip(*columns, strict=True))
    ]
    colours = {
        "domain": ["in the batch", "left out"],
        "range": ["var(--series-0)", "var(--series-7)"],
    }
    return (
        points(
            "Requests in the batch",
            f"{len(chosen):,} of {problem.requests:,} requests.",
            rows,
            x=quantity("due in (s)"),
            y=quantity("expected tokens"),
            color=category("taken", title=None, scale=colours),
        ),
    )


VIEW = View(charts=charts)
