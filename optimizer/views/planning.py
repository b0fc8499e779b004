"""Display of the values on which a plan is based.

The display includes the sources of the values, unused inputs, and advice on additional
measurements.
"""

from __future__ import annotations

from collections.abc import Sequence

from specopt.console.terminal import Console, line, sentence, title
from specopt.instances.deployment.proposal import Value

WIDEST = 70


def print_values(target: str, values: Sequence[Value], unused: Sequence[str], out: Console) -> None:
    """Print the values on which a plan is based. Assumed values come first."""
    count = sum(value.assumed for value in values)
    title(
        out,
        f"{target}: ",
        f"{count} of {len(values)} values are assumed",
        "yellow" if count else "green",
    )
    width = max(len(value.name) for value in values)
    for is_assumed, heading in ((True, "Assumed:"), (False, "Known:")):
        chosen = [value for value in values if value.assumed is is_assumed]
        if chosen:
            sentence(out, heading)
        for value in chosen:
            text = value.text if len(value.text) <= WIDEST else value.text[: WIDEST - 4] + " ..."
            line(out, value.name, f"{text}  ({value.source})", width)
    for text in unused:
        sentence(out, f"  Not used: {text}.")
    out.print()


def print_next(advice: Sequence[str], out: Console) -> None:
    """Print advice on what to measure next."""
    out.print()
    sentence(
        out,
        "Measure next:"
        if advice
        else "Nothing that matters is assumed; measure again when traffic changes.",
    )
    for text in advice:
        sentence(out, f"  {text}")
