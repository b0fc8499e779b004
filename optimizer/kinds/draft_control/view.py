"""Display of draft-control plans, as text and as charts."""

from __future__ import annotations

from specopt.console.terminal import MAX_ROWS, Console, print_first, table
from specopt.kinds.chart import Chart, category, points, quantity, weight
from specopt.kinds.view import View
from specopt.models.draft_control.problem import DraftControlPlan, DraftControlProblem


def print_plan(problem: DraftControlProblem, plan: DraftControlPlan, out: Console) -> None:
    """Print the draft length and the resolution that a plan chooses in each channel state."""
    shares = problem.stationary_distribution.tolist()
    resolutions = problem.resolutions.tolist()
    view = table("  state", "share", "uplink bit/s", "acceptance", "draft length", "resolution")
    for index, choice in enumerate(plan.policy[:MAX_ROWS]):
        state = problem.states[index]
        cells = (index, f"{shares[index]:.2%}", f"{state.uplink_bits_per_second:.4g}")
        if choice.draft_length:
            rate = state.acceptance_rates[resolutions.index(choice.resolution)]
            view.add_row(*cells, f"{rate:.4g}", choice.draft_length, choice.resolution)
        else:
            view.add_row(*cells, "", "0", "")
    print_first(out, view, len(plan.policy), "states")


def charts(problem: DraftControlProblem, plan: DraftControlPlan) -> tuple[Chart, ...]:
    """Return a scatter plot of draft length against uplink rate, with a point per channel state."""
    shares = problem.stationary_distribution.tolist()
    rows = [
        {
            "uplink (bit/s)": state.uplink_bits_per_second,
            "draft length": choice.draft_length,
            "resolution": str(choice.resolution) if choice.draft_length else "none",
            "share of time (%)": 100.0 * share,
            "state": index,
        }
        for index, (state, choice, share) in enumerate(
            zip(problem.states, plan.policy, shares, strict=True)
        )
    ]
    return (
        points(
            "Draft length over the uplink rate",
            "Each point is a state of the channel; its size is the share of time.",
            rows,
            x=quantity("uplink (bit/s)", scale={"type": "log"}, axis={"format": "~s"}),
            y=quantity("draft length", axis={"tickMinStep": 1}),
            color=category("resolution"),
            size=weight("share of time (%)", 400),
        ),
    )


VIEW = View(print_plan=print_plan, charts=charts)
