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
            help="Result files, folders of compare, or measured sweeps, as for tune.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="PAGE", help="Write the page to this file (HTML)."),
    ],
    problem: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Problem of a result, instead of the file that solve noted in the result.",
        ),
    ] = None,
) -> None:
    """Write one self-contained HTML page: charts, tables, and a description of what is proven.

    If the problem of a result is found, its plan is judged again and drawn. Text and pictures need
    no scripts.
    """
    from specopt.kinds.chart import MISSING
    from specopt.models.files import write_text
    from specopt.report.page import can_draw, has_charts, to_html
    from specopt.report.sources import page_of

    files = problem or []
    for source in (*map(Path, sources), *files):
        check_target(output, source)
    page = page_of(tuple(sources), [read_problem(file) for file in files])
    for file in page.noted:
        check_target(output, file)
    html = to_html(page)
    write_text(output, html)
    if has_charts(html) and not can_draw():
        say(f"charts are replaced by tables: {MISSING}")
    say(f"written to {output}")
