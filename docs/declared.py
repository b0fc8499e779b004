"""Directives that write what is declared in the package: methods, fields, families, the ledger of the papers, commands.

A page says ``{methods} serving-latency`` and never repeats what a method, a problem or a benchmark says of itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from specopt.api.solve import methods as methods_of
from specopt.kinds import kind_of
from specopt.models.schema import rows as schema_rows
from specopt.models.schema import schema as schema_of
from specopt.reproductions.ledger import TITLES, entries, paper
from specopt.reproductions.views import HEAD, assumption_cells, cells, count_rows, summary
from specopt.views.methods import method_entry

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for line in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |"


def methods(kind: str) -> Iterator[str]:
    """Yield the methods of a kind: what they are, promise, cost and take."""
    entries = [method_entry(method) for method in methods_of(kind_of(kind).problem)]
    rows = [
        (f"`{one['name']}`", one["summary"], one["guarantee"], one["complexity"], "; ".join(one["takes"]) or "all")
        for one in entries
        if one["distribution"] == "specopt"
    ]
    yield from table(["method", "what it is", "promise", "cost", "takes"], rows)


def fields(kind: str) -> Iterator[str]:
    """Yield the fields of a kind's problems and of its plans: unit, default, range, meaning."""
    for title, part in (("A problem", kind_of(kind).problem), ("Its plan", kind_of(kind).plan)):
        head = ("field", "unit", "default", "range", "description")
        rows = [[f"`{row['field']}`", *(row[name] for name in head[1:])] for row in schema_rows(schema_of(part))]
        yield from ("", f"**{title}**", "", *table(head, rows))


def families(kind: str) -> Iterator[str]:
    """Yield the families of a kind, with their parameters."""
    for family in kind_of(kind).families:
        defaults = ", ".join(f"`{name}={value}`" for name, value in family.defaults.items() if name in family.plain)
        yield f"- `{family.name}`: {family.summary} {f'({defaults})' if defaults else ''}".rstrip()


def ledger(name: str) -> Iterator[str]:
    """Yield what a paper states and what became of it, and what its simulations assume; without a name the counts."""
    if not name:
        rows = list(count_rows(entries(*map(paper, TITLES))))
        yield from table(
            ["", *rows[0][1]], [[f"`{row}`" if row in TITLES else row, *found.values()] for row, found in rows]
        )
        return
    one = paper(name)
    yield from (f"{line}\n" for line in summary(one, entries(one)))
    yield from table(HEAD, map(cells, entries(one)))
    yield from (
        "",
        *table(["assumption", "default", "range", "reason"], map(assumption_cells, one.assumptions.values())),
    )


def results(pattern: str) -> Iterator[str]:
    """Yield the newest recorded table of every benchmark whose name matches a pattern."""
    newest: dict[str, tuple[str, str]] = {}
    for path in sorted(RESULTS.glob("*.md")):
        machine, *sections = path.read_text().split("\n## ")
        for section in sections:
            name, _, body = section.partition("\n")
            newest[name] = (f"{path.stem}, {machine.splitlines()[2]}", body.strip())
    found = {name: section for name, section in newest.items() if re.search(pattern, name)}
    for name, (origin, body) in found.items():
        yield from (f"**{name}** ({origin})", "", body, "")
    if not found:
        yield "Measured by `make bench`, but not recorded yet."


def commands(_: str) -> Iterator[str]:
    """Yield the commands with their arguments and options, a section each."""
    command = [sys.executable, "-P", "-m", "typer", "specopt.commands.cli", "utils", "docs", "--name", "specopt"]
    page = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    yield page[page.index("\n## ") :]


def directive(text: Callable[[str], Iterator[str]]) -> type[SphinxDirective]:
    """Return the directive that takes one argument and stands for the Markdown of a function."""

    class Written(SphinxDirective):
        optional_arguments, final_argument_whitespace = 1, True

        def run(self) -> list[nodes.Node]:
            lines = "\n".join(text(self.arguments[0] if self.arguments else ""))
            return self.parse_text_to_nodes(lines, allow_section_headings=True)

    return Written


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    for text in (methods, fields, families, ledger, results, commands):
        app.add_directive(text.__name__, directive(text))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
