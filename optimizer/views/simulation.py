"""Simulations for the terminal."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from specopt.solvers.simulation import QUANTILES, Estimate, Simulation
from specopt.views.terminal import line


def print_simulation(simulation: Simulation, what: str, out: Console, name: str = "") -> None:
    """Print all estimates with their intervals and quantiles, and the model's number beside the headline.

    Parameters
    ----------
    simulation
        What is printed.
    what
        What was played: "plan by exact", or "policy hat on specbench".
    out
        Where to.
    name
        The problem's, if it has one.
    """
    title = Text(f"{simulation.kind} {what}, played {simulation.replications} times: ")
    title.append(f"{_words(simulation.quantity)} {simulation.mean:.6g} on average", style="bold cyan")
    out.print(title, soft_wrap=True)
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  quantile", overflow="fold")
    for header in ("mean", "+-", *(f"{level:.0%}" for level in QUANTILES)):
        table.add_column(header, justify="right", no_wrap=True)
    for quantity, estimate in simulation.estimates.items():
        table.add_row(f"  {_words(quantity)}", *_cells(estimate))
    out.print(table)


def _cells(estimate: Estimate) -> list[str]:
    low, high = estimate.confidence_interval
    half = "" if math.isnan(low) else f"{(high - low) / 2:.2g}"
    return [f"{estimate.mean:.5g}", half, *(f"{value:.5g}" for value in estimate.quantiles.values())]


def _words(quantity: str) -> str:
    """Return a quantity as words, its unit in brackets.

    Examples
    --------
    >>> _words("latency_seconds"), _words("tokens_per_second"), _words("gap_to_optimum")
    ('latency (s)', 'tokens/s', 'gap to optimum')
    """
    words = quantity.replace("_per_second", "/s").replace("_per_", "/").replace("_seconds", " (s)").replace("_", " ")
    return words.replace("ttft", "TTFT").replace("tbt", "TBT")
