"""Plans of draft control for the terminal."""

from __future__ import annotations

from rich.console import Console

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.views.terminal import MOST_ROWS, cut, table
from specopt.views.view import View


def print_plan(problem: DraftControlProblem, plan: DraftControlPlan, out: Console) -> None:
    """Print the choice of each state."""
    shares = problem.stationary_distribution.tolist()
    resolutions = problem.resolutions.tolist()
    view = table("  state", "share", "uplink bit/s", "acceptance", "draft length", "resolution")
    for index, choice in enumerate(plan.policy[:MOST_ROWS]):
        state = problem.states[index]
        cells = (str(index), f"{shares[index]:.2%}", f"{state.uplink_bits_per_second:.4g}")
        if choice.draft_length:
            rate = state.acceptance_rates[resolutions.index(choice.resolution)]
            view.add_row(*cells, f"{rate:.4g}", str(choice.draft_length), str(choice.resolution))
        else:
            view.add_row(*cells, "", "0", "")
    out.print(view)
    cut(out, len(plan.policy), "states")


VIEW = View(print_plan=print_plan)
