"""Plans of draft stopping, shown."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from specopt import DraftStoppingPlan, DraftStoppingProblem, generate
from specopt.kinds.draft_stopping.view import VIEW


def test_a_plan_is_a_row_per_node() -> None:
    """Tests that a plan is shown as where each node goes, its start marked, and one without drafts
    by a word.
    """
    problem = generate("draft-stopping/mixed", bins=2, max_draft=4)
    assert isinstance(problem, DraftStoppingProblem)

    def shown(start: int) -> list[list[str]]:
        out = StringIO()
        plan = DraftStoppingPlan.from_dict({"start": start, "next": [[1, -1], [-1, -1]]})
        VIEW.print_plan(problem, plan, Console(file=out, width=100))
        return [line.split() for line in out.getvalue().splitlines()]

    assert shown(0)[1:] == [["0", "(start)", "1", "stop"], ["1", "stop", "stop"]]
    assert shown(-1) == [["drafts", "none"]]
