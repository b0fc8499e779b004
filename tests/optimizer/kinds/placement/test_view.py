"""Plans of placement, shown."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from small_instances.placement import problem_of, verifier

from specopt import PlacementPlan
from specopt.kinds.placement.view import VIEW


def test_a_plan_is_a_row_per_class_and_place() -> None:
    """Tests that a plan is shown with a row for each class and place, which marks drafting ahead,
    and with the load of each verifier, which is missing if none of its units is used.
    """
    problem = problem_of(verifiers=[verifier(units=2), verifier("spare")])
    clients = [
        {"class": "chat", "per_unit": 1, "place": "none"},
        {
            "class": "chat",
            "per_unit": 2,
            "place": "device",
            "drafter": "drafter",
            "draft_tokens": 2,
            "overlap": True,
        },
    ]
    groups = [{"verifier": "verifier", "units": 1, "clients": clients}]
    out = StringIO()
    plan = PlacementPlan.from_dict({"groups": groups})
    VIEW.print_plan(problem, plan, Console(file=out, width=120))
    rows = [line.split() for line in out.getvalue().splitlines() if line.strip()]
    assert rows[1][:5] == ["chat", "none", "verifier", "1", "12.8"]
    assert rows[2][:7] == ["chat", "device,", "ahead", "verifier", "drafter", "2", "2"]
    assert rows[3][:6] == ["verifier", "1", "of", "2", "units,", "busy"]
    assert rows[4] == ["spare", "0", "of", "1", "units"]
