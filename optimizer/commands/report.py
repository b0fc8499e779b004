"""The command `specopt report`, which writes an HTML page about results, comparisons or sweeps."""

from __future__ import annotations

from pathlib import Path

from specopt.commands.shared import (
    argument,
    check_target,
    option,
    read_problem,
    required,
    say_written,
)
from specopt.console.streams import say


def report(
    sources: list[str] = argument(
        "SOURCE...", "Result files, folders of compare, or measured sweeps, as for tune."
    ),
    output: Path = required("PAGE", "Write the page to this file (HTML).", "-o", "--output"),
    problem: list[Path] | None = option(
        "FILE", "Problem of a result, instead of the file that solve noted in the result."
    ),
) -> None:
    """Write a self-contained HTML page with charts, tables and certificates.

    If the problem of a result is found, its plan is judged again and drawn. Text and pictures
    are shown without JavaScript.
    """
    from specopt.kinds.chart import MISSING
    from specopt.models.files import write_text
    from specopt.report.page import can_draw, has_charts, to_html
    from specopt.report.sources import page_of

    files = problem or []
    check_target(output, *map(Path, sources), *files)
    page = page_of(tuple(sources), [read_problem(file) for file in files])
    check_target(output, *page.noted)
    html = to_html(page)
    write_text(output, html)
    if has_charts(html) and not can_draw():
        say(f"charts are replaced by tables: {MISSING}")
    say_written(output)
