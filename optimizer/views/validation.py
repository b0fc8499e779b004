"""Display of a validated prediction as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from specopt.console.terminal import sentence, table_of

SMALL = 0.02
"""Share of the output below which no correction is shown."""


def print_validation(data: Mapping[str, Any], out: Console) -> None:
    """Print the predicted and measured throughput, the ranking of options, and the corrections."""
    out.print(table_of(data["loads"]))
    order = data["order"]
    rest = (
        "" if order["pairs"] else ": start the server with another draft length, and run it again"
    )
    out.print()
    sentence(out, f"Tokens per second; the median error is {data['median_error']:.1%}.")
    shown = (
        f"{order['right']} of {order['separated']} pairs that the intervals tell apart are as"
        f" predicted{rest}."
    )
    sentence(out, f"Order of options: {shown}")
    for note in data["notes"]:
        sentence(out, f"At {note}.")
    if data["acceptance"]:
        columns = (data["acceptance"][name] for name in ("acceptance_rates", "lower", "upper"))
        rates = ", ".join(
            f"{one:.3f} ({low:.3f}-{high:.3f})" for one, low, high in zip(*columns, strict=True)
        )
        sentence(out, f"Acceptance by position: {rates}.")
    out.print("\nMeasured over predicted, and where to correct it:\n")
    rows = [
        row | {"in": row["in"] if abs(row["output"]) > SMALL else "as predicted"}
        for row in data["factors"]
    ]
    out.print(table_of(rows))
