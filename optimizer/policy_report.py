"""A readable summary of a simulated policy of draft control."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from specopt.models.problem import Problem
from specopt.models.result import Result
from specopt.solvers.draft_control.simulate import PolicySimulation


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
        out.print(Text(f"  {label:<15} {text}"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  quantile")
    table.add_column("tokens/s of a replication", justify="right", no_wrap=True)
    for level, rate in simulation.quantiles_tokens_per_second.items():
        table.add_row(f"  {level:.0%}", f"{rate:.6g}")
    out.print(table)
