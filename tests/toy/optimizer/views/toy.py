"""Plans of `toy` for the terminal."""

from __future__ import annotations

from rich.console import Console

from specopt.models.toy import ToyPlan, ToyProblem
from specopt.views.terminal import line
from specopt.views.view import View


def print_plan(problem: ToyProblem, plan: ToyPlan, out: Console) -> None:
    """Print how many are taken."""
    line(out, "taken", f"{plan.count} of {problem.limit}")


VIEW = View(print_plan=print_plan)
