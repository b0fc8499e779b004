"""Plans of `toy` for the terminal."""

from __future__ import annotations

from rich.console import Console

from specopt.console.terminal import line
from specopt.kinds.view import View
from specopt.models.toy.problem import ToyPlan, ToyProblem


def print_plan(problem: ToyProblem, plan: ToyPlan, out: Console) -> None:
    """Print how many are taken."""
    line(out, "taken", f"{plan.count} of {problem.limit}")


VIEW = View(print_plan=print_plan)
