"""What every view for the terminal shares: console, titles, lines, tables, shares, colours, widths.

Views print plain text and `Text`; nothing that a file, a name or a message holds is taken for
markup or reaches the terminal as a control sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from specopt.console.stdout import stdout
from specopt.models.fields import escaped, printable
from specopt.models.result import Status

MAX_ROWS = 40
PLAIN_WIDTH = 100
LABEL = 15

COLOURS = {
    Status.OPTIMAL: "green",
    Status.FEASIBLE: "cyan",
    Status.INFEASIBLE: "red",
    Status.NONE: "yellow",
}


class _Terminal(Console):
    """A console on which text is text: what is printed may come from anywhere."""

    def __init__(self, file: IO[str]) -> None:
        width = None if file.isatty() else PLAIN_WIDTH
        super().__init__(file=file, highlight=False, markup=False, emoji=False, width=width)

    def render_str(self, text: str, **how: Any) -> Text:
        """Return a text to print, escaped before it is measured."""
        return super().render_str(_printable(text), **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of what is printed, those of a `Text` escaped, too."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else _printable(text), style, control)


def _printable(text: str) -> str:
    return "\n".join(map(escaped, text.split("\n")))


class _Table(Table):
    """A table whose cells are lines: no name in them breaks the row, or fills the screen."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row."""
        super().add_row(
            *(printable(cell) if isinstance(cell, str) else cell for cell in cells), **options
        )


def console(file: IO[str] | None = None) -> Console:
    """Return a console on a file, stdout by default; its width is fixed outside a terminal."""
    return _Terminal(stdout() if file is None else file)


def title(out: Console, text: str, emphasis: str, colour: str = "cyan", after: str = "") -> None:
    """Print a headline whose point is emphasised."""
    parts = (printable(text), (printable(emphasis), f"bold {colour}"), printable(after))
    out.print(Text.assemble(*parts), soft_wrap=True)


def line(out: Console, label: str, text: str, width: int = LABEL) -> None:
    """Print a label and what belongs to it."""
    sentence(out, f"  {printable(label):<{width}} {text}")


def sentence(out: Console, text: str, style: str = "") -> None:
    """Print one line; names in it may hold anything."""
    out.print(Text(printable(text), style=style), soft_wrap=True)


def table(*headers: str, left: int = 0, gap: int = 2) -> Table:
    """Return an empty table: the first columns flush left, the others flush right, and gaps between
    them.
    """
    view = _Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for position, header in enumerate(headers):
        view.add_column(header, justify="left" if position < left else "right", no_wrap=True)
    return view


def table_of(rows: Sequence[Mapping[str, Any]], shown: Callable[[Any], str] = str) -> Table:
    """Return rows as a table with their keys as headers; columns of text are flush left."""
    view = table()
    for name in rows[0]:
        is_text = all(isinstance(row[name], str) for row in rows)
        view.add_column(name, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        view.add_row(*map(shown, row.values()))
    return view


def cut(out: Console, count: int, what: str) -> None:
    """Say how many rows of a table were left out, if there are any."""
    if count > MAX_ROWS:
        out.print(f"  ... and {count - MAX_ROWS:,} more {what}")


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
