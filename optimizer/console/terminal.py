"""Functions and classes with which all terminal output is formatted and printed.

Output consists of plain strings and `Text` objects. Strings from files, names and messages are
never interpreted as markup, and their control characters are escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from rich.console import Console as Console
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from specopt.console.stdout import stdout
from specopt.models.fields import escaped, printable
from specopt.models.result import Status

MAX_ROWS = 40
"""Maximum number of rows to print per table.

If there are more rows, the number of omitted rows is printed below the table.
"""

PLAIN_WIDTH = 100
"""Width to which text is wrapped if the output is not a terminal, in columns."""

UNLIMITED = 1_000_000
"""Width available to tables if the output is not a terminal, in columns.

The width is so large that no cell is truncated.
"""

LABEL = 15
"""Width of the label at the beginning of a line, in columns."""

COLOURS = {
    Status.OPTIMAL: "green",
    Status.FEASIBLE: "cyan",
    Status.INFEASIBLE: "red",
    Status.NONE: "yellow",
}


class _Terminal(Console):
    """A console that interprets no string as markup, because strings may come from any file."""

    def __init__(self, file: IO[str]) -> None:
        width = None if file.isatty() else PLAIN_WIDTH
        super().__init__(file=file, highlight=False, markup=False, emoji=False, width=width)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects. Lines that are too long are cropped only on a terminal."""
        super().print(*objects, crop=self.file.isatty(), **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a string to a `Text` object, escaping control characters."""
        return super().render_str(_printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments to print. Control characters in text segments are escaped."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else _printable(text), style, control)


def _printable(text: str) -> str:
    return "\n".join(map(escaped, text.split("\n")))


class Cells(Table):
    """A table in which each cell is a single line. Cells are truncated only on a terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the rendered rows of the table."""
        if not console.file.isatty():
            options = options.update(max_width=UNLIMITED)
        yield from super().__rich_console__(console, options)

    def add_row(self, *cells: object, **options: Any) -> None:
        """Add a row of cells. Values other than `Text` objects are converted to escaped strings."""
        super().add_row(
            *(cell if isinstance(cell, Text) else printable(str(cell)) for cell in cells),
            **options,
        )


def console(file: IO[str] | None = None) -> Console:
    """Return a console that writes to a file, or to stdout by default."""
    return _Terminal(stdout() if file is None else file)


def title(out: Console, text: str, emphasis: str, colour: str = "cyan", after: str = "") -> None:
    """Print a headline that consists of `text`, an emphasised part, and `after`."""
    parts = (printable(text), (printable(emphasis), f"bold {colour}"), printable(after))
    out.print(Text.assemble(*parts), soft_wrap=True)


def line(out: Console, label: str, text: str, width: int = LABEL) -> None:
    """Print a line that consists of a label and a string."""
    sentence(out, f"  {printable(label):<{width}} {text}")


def sentence(out: Console, text: str, style: str = "") -> None:
    """Print a string as one line, with control characters escaped."""
    out.print(Text(printable(text), style=style), soft_wrap=True)


def table(*headers: str, left: int = 0, gap: int = 2) -> Cells:
    """Return an empty table with the given headers.

    The first `left` columns are left-aligned, and all other columns are right-aligned.
    """
    view = Cells(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for position, header in enumerate(headers):
        view.add_column(header, justify="left" if position < left else "right", no_wrap=True)
    return view


def cell(value: object) -> str:
    """Format a value for display in a table cell."""
    if isinstance(value, list):
        return "-".join(map(cell, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table_of(rows: Sequence[Mapping[str, Any]], shown: Callable[[Any], str] = cell) -> Cells:
    """Return a table of rows, in which the keys of the rows are the column headers.

    Columns of strings are left-aligned.
    """
    view = table()
    for name in rows[0]:
        is_text = all(isinstance(row[name], str) for row in rows)
        view.add_column(name, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        view.add_row(*map(shown, row.values()))
    return view


def print_first(out: Console, view: Cells, count: int, rows: str) -> None:
    """Print a table that contains the first of `count` rows.

    Below the table, state how many rows were omitted. `rows` is the noun for the rows.
    """
    out.print(view)
    if count > MAX_ROWS:
        out.print(f"  ... and {count - MAX_ROWS:,} more {rows}")


def percent(share: float) -> str:
    """Format a share as a percentage. A positive share is never rounded to zero.

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
