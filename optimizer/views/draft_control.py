"""Plans of draft control for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.views.terminal import MOST_ROWS


def print_plan(problem: DraftControlProblem, plan: DraftControlPlan, out: Console) -> None:
    """Print the choice of each state."""
    shares = problem.stationary_distribution.tolist()
    resolutions = problem.resolutions.tolist()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("  state", "share", "uplink bit/s", "acceptance", "draft length", "resolution"):
        table.add_column(header, justify="right")
    for index, choice in enumerate(plan.policy[:MOST_ROWS]):
        state = problem.states[index]
        cells = (str(index), f"{shares[index]:.2%}", f"{state.uplink_bits_per_second:.4g}")
        if choice.draft_length:
            rate = state.acceptance_rates[resolutions.index(choice.resolution)]
            table.add_row(*cells, f"{rate:.4g}", str(choice.draft_length), str(choice.resolution))
        else:
            table.add_row(*cells, "", "0", "")
    out.print(table)
    if len(plan.policy) > MOST_ROWS:
        out.print(f"  ... and {len(plan.policy) - MOST_ROWS} more states")
