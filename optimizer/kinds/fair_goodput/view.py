"""Display of fair-goodput plans, as text and as charts."""

from __future__ import annotations

from specopt.console.terminal import MAX_ROWS, Console, line, print_first, table
from specopt.kinds.chart import Chart, points, quantity, rows_of, weight
from specopt.kinds.view import View
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem


def print_plan(problem: FairGoodputProblem, plan: FairGoodputPlan, out: Console) -> None:
    """Print a plan's goodput, a summary of its schedule, and a table of the clients."""
    unit = f"tokens per {problem.per}"
    line(out, "goodput", f"{plan.goodput.sum():.6g} {unit} in total, {problem.clients:,} clients")
    common = problem.worth(problem.utility(plan.goodput), problem.scale)
    line(
        out,
        "common rate",
        f"{common:.6g} {unit} for every client has the same utility; the gap refers to this rate",
    )
    line(
        out,
        "draft tokens",
        f"{plan.mean_draft_tokens.sum():.6g} of {problem.budget_tokens:,} per round",
    )
    shares = "time" if problem.per == "second" else "rounds"
    line(
        out,
        "schedule",
        f"{len(plan.schedule):,} allocations by shares of {shares}, {plan.schedule.changes:,}"
        " changes",
    )
    view = table("  client", "acceptance", unit, "mean drafts")
    columns = (problem.acceptance_rates, plan.goodput, plan.mean_draft_tokens)
    for client, (rate, goodput, drafts) in enumerate(
        zip(*(c[:MAX_ROWS].tolist() for c in columns), strict=True)
    ):
        view.add_row(client, f"{rate:.4g}", f"{goodput:.6g}", f"{drafts:.4g}")
    print_first(out, view, problem.clients, "clients")


def charts(problem: FairGoodputProblem, plan: FairGoodputPlan) -> tuple[Chart, ...]:
    """Return a chart that plots each client's goodput against its acceptance rate."""
    unit = f"tokens per {problem.per}"
    columns = {
        "acceptance rate": problem.acceptance_rates,
        unit: plan.goodput,
        "mean drafts per round": plan.mean_draft_tokens,
    }
    return (
        points(
            f"Goodput of each client: {unit} over its acceptance rate",
            "Each point is a client; its size is the mean number of drafts.",
            rows_of("client", columns),
            x=quantity("acceptance rate", scale={"zero": False}),
            y=quantity(unit),
            size=weight("mean drafts per round"),
        ),
    )


VIEW = View(print_plan=print_plan, charts=charts)
