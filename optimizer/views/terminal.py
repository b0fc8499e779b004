"""What every view for the terminal shares: console, lines, shares, colours, widths."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from specopt.models.result import Status

MOST_ROWS = 40
PLAIN_WIDTH = 100
LABEL = 15

COLOURS = {Status.OPTIMAL: "green", Status.FEASIBLE: "cyan", Status.INFEASIBLE: "red", Status.NONE: "yellow"}


def console() -> Console:
    """Return a console on stdout; its width is fixed where no terminal says one."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)


def line(out: Console, label: str, text: str, width: int = LABEL) -> None:
    """Print a label and what belongs to it."""
    out.print(Text(f"  {label:<{width}} {text}"), soft_wrap=True)


def percent(share: float) -> str:
    """Return a share as a percentage; a positive one is never rounded to zero.

    Examples
    --------
    >>> percent(0.0), percent(0.0123), percent(1e-9)
    ('0 %', '1.23 %', '<0.01 %')
    """
    if share == 0:
        return "0 %"
    if abs(share) > 100.0:
        return ">10000 %"
    return "<0.01 %" if abs(share) < 5e-5 else f"{share:.2%}".replace("%", " %")
