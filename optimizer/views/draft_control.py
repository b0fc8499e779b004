"""Policies of draft control, planned and simulated, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.models.problem import Problem
from specopt.models.result import Result
from specopt.solvers.draft_control.simulate import PolicySimulation
from specopt.views.terminal import MOST_ROWS, line


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


def print_policy_simulation(problem: Problem, played: Result, simulation: PolicySimulation, out: Console) -> None:
    """Print the rate of a policy, how sure it is, and the judge's number."""
    runs = f"{simulation.replications} times {simulation.iterations} iterations"
    title = Text(f"{problem.kind} plan by {played.method}, played {runs}: ")
    title.append(f"{simulation.mean_tokens_per_second:.6g} tokens/s", style="bold cyan")
    out.print(title, soft_wrap=True)
    low, high = simulation.confidence_interval_tokens_per_second
    lines = [("problem", problem.name)] if problem.name else []
    lines += [
        ("rate", f"{simulation.mean_tokens_per_second:.6g} tokens/s  95 % confidence {low:.6g} to {high:.6g}"),
        ("model", f"{simulation.model_tokens_per_second:.6g} tokens/s  rate / model {simulation.ratio:.4f}"),
        (
            "per iteration",
            f"{simulation.mean_draft_tokens:.4g} drafts, {simulation.mean_accepted_tokens:.4g} of them accepted",
        ),
    ]
    if simulation.responses is not None:
        one = simulation.responses
        low, high = one.confidence_interval_tokens_per_second
        lines.append(
            (
                "responses",
                f"{one.mean_tokens_per_second:.6g} tokens/s on average over responses of {one.least_tokens} tokens "
                f"(Eq. 12)  95 % confidence {low:.6g} to {high:.6g}",
            )
        )
    for label, text in lines:
        line(out, label, text)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  quantile")
    table.add_column("tokens/s of a replication", justify="right", no_wrap=True)
    for level, rate in simulation.quantiles_tokens_per_second.items():
        table.add_row(f"  {level:.0%}", f"{rate:.6g}")
    out.print(table)
