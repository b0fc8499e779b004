"""Charts of plans: the marks that browsers draw quickly, and a word on those that are left out."""

from __future__ import annotations

import numpy as np

from specopt import generate
from specopt.models.draft_allocation import DraftAllocationPlan, DraftAllocationProblem
from specopt.views.chart import MOST_MARKS
from specopt.views.draft_allocation import charts


def test_charts_say_what_they_leave_out() -> None:
    """Tests that a chart has at most its marks, and that its note counts the rows where there are more."""
    for clients, left_out in ((12, ""), (MOST_MARKS + 1, " The first 1,500 of 1,501.")):
        problem = generate("draft-allocation/uniform", clients=clients)
        assert isinstance(problem, DraftAllocationProblem)
        plan = DraftAllocationPlan(draft_tokens=np.zeros(problem.clients, np.int64))
        (chart,) = charts(problem, plan)
        assert chart.note == f"A point is a client; larger ones weigh more.{left_out}"
        assert len(chart.rows) == min(clients, MOST_MARKS)
