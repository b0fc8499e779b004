"""`specopt report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specopt.commands.shared import check_target, read_problem
from specopt.console.streams import say


def report(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="A result file, folders of compare, or measured sweeps, as for tune.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="PAGE", help="Write the page to this file (HTML)."),
    ],
    problem: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Problem of the result: the plan is judged again, and drawn.",
        ),
    ] = None,
) -> None:
    """Write one self-contained HTML page: charts, tables, and a description of what is proven.

    Its text and pictures need no scripts.
    """
    from specopt.kinds.chart import MISSING
    from specopt.models.files import write_text
    from specopt.report.page import can_draw, to_html
    from specopt.report.sources import page_of

    for source in (*map(Path, sources), problem):
        check_target(output, source)
    page = to_html(page_of(tuple(sources), None if problem is None else read_problem(problem)))
    write_text(output, page)
    if not can_draw():
        say(f"charts are replaced by tables: {MISSING}")
    say(f"written to {output}")
