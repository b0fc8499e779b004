"""Display of simulations as text."""

from __future__ import annotations

import math

from specopt.console.terminal import Console, line, table, title
from specopt.solvers.simulation import QUANTILES, Estimate, Simulation


def print_simulation(
    simulation: Simulation, out: Console, played: str = "", name: str = ""
) -> None:
    """Print all estimates from a simulation, with their intervals and quantiles.

    For the main quantity, the value predicted by the model is printed as well. `played` describes
    the plan or policy, such as "plan by exact" or "policy hat on specbench"; by default, it is the
    name of the policy. `name` is the name of the problem, if any.
    """
    mean = f"{_words(simulation.quantity)} {simulation.mean:.6g} on average"
    title(
        out,
        f"{simulation.kind} {played or simulation.policy}, simulated"
        f" {simulation.replications} times: ",
        mean,
    )
    if name:
        line(out, "problem", name)
    low, high = simulation.confidence_interval
    sure = "" if math.isnan(low) else f"  95 % confidence {low:.6g} to {high:.6g}"
    line(out, "mean", f"{simulation.mean:.6g}{sure}")
    if simulation.model is not None:
        ratio = "" if simulation.ratio is None else f"  mean / model {simulation.ratio:.4f}"
        line(out, "model", f"{simulation.model:.6g}{ratio}")
    for label, text in simulation.facts.items():
        line(out, label, text)
    view = table("  quantile", "mean", "+-", *(f"{level:.0%}" for level in QUANTILES), left=1)
    view.columns[0].no_wrap, view.columns[0].overflow = False, "fold"
    for quantity, estimate in simulation.estimates.items():
        view.add_row(f"  {_words(quantity)}", *_cells(estimate))
    out.print(view)


def _cells(estimate: Estimate) -> list[str]:
    low, high = estimate.confidence_interval
    half = "" if math.isnan(low) else f"{(high - low) / 2:.2g}"
    return [
        f"{estimate.mean:.5g}",
        half,
        *(f"{value:.5g}" for value in estimate.quantiles.values()),
    ]


def _words(quantity: str) -> str:
    """Return the name of a quantity in words, with its unit in parentheses or after a slash.

    Examples
    --------
    >>> _words("latency_seconds"), _words("tokens_per_second"), _words("gap_to_optimum")
    ('latency (s)', 'tokens/s', 'gap to optimum')
    """
    words = (
        quantity.replace("_per_second", "/s")
        .replace("_per_", "/")
        .replace("_seconds", " (s)")
        .replace("_", " ")
    )
    return words.replace("ttft", "TTFT").replace("tbt", "TBT")
