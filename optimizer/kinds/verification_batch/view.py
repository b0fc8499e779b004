"""Display of verification-batch plans as charts."""

from __future__ import annotations

import numpy as np

from specopt.kinds.chart import Chart, category, points, quantity, rows_of
from specopt.kinds.view import View
from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)


def charts(problem: VerificationBatchProblem, plan: VerificationBatchPlan) -> tuple[Chart, ...]:
    """Return a scatter plot of the requests by expected number of tokens and deadline.

    The colour shows whether a request is in the batch.
    """
    taken = np.full(problem.requests, "left out", object)
    taken[plan.batch] = "in the batch"
    columns = {
        "taken": taken,
        "expected tokens": problem.expected_tokens,
        "due in (s)": problem.deadline_seconds - problem.now_seconds,
        "new tokens": problem.new_tokens,
        "cached tokens": problem.cached_tokens,
    }
    colours = {
        "domain": ["in the batch", "left out"],
        "range": ["var(--series-0)", "var(--series-7)"],
    }
    return (
        points(
            "Requests in the batch",
            f"{len(plan.batch):,} of {problem.requests:,} requests.",
            rows_of("request", columns),
            x=quantity("due in (s)"),
            y=quantity("expected tokens"),
            color=category("taken", title=None, scale=colours),
        ),
    )


VIEW = View(charts=charts)
