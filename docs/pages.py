"""Writes what is declared and recorded into the pages, as plain Markdown: ``make pages``.

A page holds ``<!-- generated: methods serving-latency -->`` ... ``<!-- end -->`` and never repeats
by hand what a method, a problem or a benchmark says of itself. What is between these marks is
written here and committed. The files of pictures end with a digest of their data and specification.
A test compares both with what would be written now; only methods that are new may be missing. The
site has tables of all methods (`with_methods`).
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from specopt.api.solve import methods as methods_of
from specopt.kinds import kind_of
from specopt.kinds.chart import Picture
from specopt.models.schema import rows as schema_rows
from specopt.models.schema import schema as schema_of
from specopt.views.methods import method_entry

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "benchmarks")]

from papers.ledger import (  # noqa: E402 - of the benchmarks
    CHECKS,
    ORIGINS,
    THEOREMS,
    TITLES,
    entries,
    paper,
)
from papers.views import HEAD, cells, count_rows, number, summary  # noqa: E402
from pictures import PICTURES  # noqa: E402 - the folder is no package

RESULTS = HERE.parent / "benchmarks" / "results"
BLOCK = re.compile(r"(<!-- generated: (\w+)(.*?)-->\n).*?(<!-- end -->)", re.DOTALL)
CELL = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DEFAULT = re.compile(r"<(?:built-in )?(?:function )?([\w.]+)(?:: '\w+'| at 0x\w+)>")
"""In a signature: its name is enough."""
MAX_ROWS = 8
"""Maximum number of rows of a benchmark's table that the page shows in full."""
DIGEST = "<!-- data and specification: {} -->\n"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for line in (head, ["---"] * len(head), *rows):
        yield (
            "| "
            + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line)
            + " |"
        )


def methods(kind: str) -> Iterator[str]:
    """Yield the methods of a kind, with their guarantees, costs and conditions."""
    entries = [method_entry(method) for method in methods_of(kind_of(kind).problem)]
    rows = [
        (
            f"`{one['name']}`",
            one["summary"],
            one["guarantee"],
            one["complexity"],
            "; ".join(one["takes"]) or "all",
        )
        for one in entries
        if one["distribution"] == "specopt"
    ]
    yield from table(["method", "description", "guarantee", "cost", "problems"], rows)


def fields(kind: str) -> Iterator[str]:
    """Yield the fields of a kind's problems and of its plans: unit, default, range, meaning.

    Fields of an object that has those of an earlier one are not repeated.
    """
    for title, part in (("A problem", kind_of(kind).problem), ("Its plan", kind_of(kind).plan)):
        head = ("field", "unit", "default", "range", "description")
        rows = {row["field"]: row for row in reversed(schema_rows(schema_of(part)))}
        shown: list[list[str]] = []
        known: dict[tuple[str, ...], str] = {}
        repeated: tuple[str, ...] = ()
        for name, row in reversed(rows.items()):
            if name.startswith(repeated):
                continue
            inside = tuple(
                str([below.removeprefix(name), *list(one.values())[1:]])
                for below, one in rows.items()
                if below.startswith((f"{name}.", f"{name}[]."))
            )
            meaning = row["description"]
            if inside in known:
                meaning += f" Fields as in `{known[inside]}`."
                repeated += (f"{name}.", f"{name}[].")
            elif inside:
                known[inside] = name
            shown.append([f"`{name}`", row["unit"], row["default"], row["range"], meaning])
        yield from ("", f"**{title}**", "", *table(head, shown))


def families(kind: str) -> Iterator[str]:
    """Yield the families of a kind, with their parameters."""
    for family in kind_of(kind).families:
        defaults = ", ".join(
            f"`{name}={value}`" for name, value in family.defaults.items() if name in family.plain
        )
        yield f"- `{family.name}`: {family.summary} {f'({defaults})' if defaults else ''}".rstrip()


def ledger(name: str) -> Iterator[str]:
    """Yield the sentences, the picture, the statements and the assumptions of a paper; without a
    name the counts of all papers.
    """
    if not name:
        rows = dict(count_rows(entries()))
        first, *_ = rows.values()
        yield from table(
            ["", *(f"[{row}](papers/{row}.md)" if row in TITLES else row for row in rows)],
            [[key, *(found[key] for found in rows.values())] for key in first],
        )
        return
    one = paper(name)
    listed = entries(one)
    yield from (f"{line}\n" for line in summary(one, listed))
    yield f"![Share of the sampled assumptions for which statements hold](../recorded/{name}.svg)\n"
    for title, belongs in STATEMENTS.items():
        found = [entry for entry in listed if belongs(entry)]
        listed = [entry for entry in listed if not belongs(entry)]
        columns = [
            (head, *column)
            for head, *column in zip(HEAD, *map(cells, found), strict=True)
            if any(column)
        ]
        if found:
            lines = table(*_transposed(columns))
            yield from _section(title, lines, len(found), folded=title == NOT_ATTEMPTED)
    rows = [
        (
            each.name,
            number(each.default),
            ", ".join(map(str, each.choices)) or f"{number(each.low)} to {number(each.high)}",
            each.reason,
        )
        for each in one.assumptions.values()
    ]
    lines = table(("assumption", "default", "range", "reason"), rows)
    yield from _section("Assumptions", lines, len(rows), folded=False)


def _transposed(columns: Sequence[Sequence[Any]]) -> tuple[Any, list[Any]]:
    """Return the head and the rows of columns that begin with their head."""
    head, *rows = zip(*columns, strict=True)
    return head, rows


def _section(title: str, lines: Iterable[str], count: int, *, folded: bool) -> Iterator[str]:
    """Yield a table under a heading, or folded under it."""
    yield from (f"## {title}", "")
    if folded:
        lines = ("<details>", f"<summary>{count} rows</summary>", "", *lines, "", "</details>")
    yield from (*lines, "")


def _can_fail(entry: Mapping[str, Any]) -> bool:
    return entry["origin"] == ORIGINS[0] and entry.get("check") == CHECKS[0]


NOT_ATTEMPTED = "Statements that were not attempted"
STATEMENTS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "Statements that the simulations can refute": lambda one: _can_fail(one) and "share" in one,
    "Statements computed from printed values": _can_fail,
    "The same statements on the real pair": lambda one: one["origin"] == ORIGINS[2],
    "Checks that we add": lambda one: one["origin"] == ORIGINS[1],
    "Theorems and algorithms": lambda one: one["status"] in THEOREMS,
    "Statements that follow by argument, or cannot fail": (
        lambda one: one["status"] != "not-attempted"
    ),
    NOT_ATTEMPTED: lambda one: True,
}
"""Titles of the groups of statements on a page; a statement is in the first that it belongs to."""


def records() -> dict[str, tuple[str, list[str]]]:
    """Return origin and lines of the newest recorded table of every benchmark."""
    newest: dict[str, tuple[str, list[str]]] = {}
    for path in sorted(RESULTS.glob("*.md")):
        machine, *sections = path.read_text().split("\n## ")
        origin = f"[{path.stem}](../benchmarks/results/{path.name}), {machine.splitlines()[2]}"
        for section in sections:
            name, _, body = section.partition("\n")
            newest[name] = (origin, body.strip().splitlines())
    return newest


def results(pattern: str) -> Iterator[str]:
    """Yield the newest recorded table of every benchmark whose name matches a pattern; of a long
    table the rows with missed targets.
    """
    for name, (origin, lines) in records().items():
        if not re.search(pattern, name):
            continue
        head, rows = lines[:2], lines[2:]
        yield from (f"**{name}** ({origin})", "")
        if len(rows) > MAX_ROWS:
            missed = [row for row in rows if "**not met**" in row]
            met = sum(row.endswith("| met |") for row in rows)
            yield from (
                f"{len(rows)} rows; {met} of {met + len(missed)} targets are met."
                + (" The others:" if missed else ""),
                "",
            )
            rows = missed
        yield from ((*head, *rows, "") if rows else ())


def selected(listed: str) -> Iterator[str]:
    """Yield rows of recorded tables; each line of the mark is ``benchmark :: row``."""
    newest = records()
    rows = []
    for line in listed.strip().splitlines():
        benchmark, _, name = line.partition(" :: ")
        origin, lines = newest[benchmark]
        (found,) = (row for row in lines if row.startswith(f"| {name} | "))
        measured, target, *_ = found.removeprefix(f"| {name} | ").split(" | ")
        rows.append((benchmark, name, measured, target, origin.partition(",")[0]))
    yield from table(["benchmark", "quantity", "measured", "target", "record"], rows)


def commands(_: str) -> Iterator[str]:
    """Yield the commands with their arguments and options, a section each."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "typer",
        "specopt.commands.cli",
        "utils",
        "docs",
        "--name",
        "specopt",
    ]
    page = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    yield page[page.index("\n## ") :]


def recorded(name: str) -> Iterator[str]:
    """Yield the text of a file beside the pages."""
    yield (HERE / name).read_text().strip()


def contents(listed: str) -> Iterator[str]:
    """Yield a list of pages and notebooks, by their titles; the first line is its heading."""
    heading, *names = listed.split("\n")
    if heading:
        yield from (f"**{heading}**", "")
    for name in names:
        text = (HERE / name).read_text()
        if name.endswith(".ipynb"):
            text = "".join(json.loads(text)["cells"][0]["source"])
        title = next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")
        yield f"- [{title}]({name})"


def api(names: str) -> Iterator[str]:
    """Yield the documentation of objects; ``NAME:*`` is a class with its public members,
    ``NAME:a,b`` with these.
    """
    for each in names.split():
        name, _, members = each.partition(":")
        found = _resolve(name)
        yield from _entry("###", name, found)
        listed = _public(found) if members == "*" else members.split(",") if members else ()
        for member in listed:
            yield from _entry(
                "####", f"{name.rpartition('.')[2]}.{member}", inspect.getattr_static(found, member)
            )


def _resolve(name: str) -> Any:
    """Return what a full name stands for."""
    module, _, last = name.rpartition(".")
    try:
        return getattr(import_module(module), last)
    except (ModuleNotFoundError, AttributeError):
        return import_module(name)


def _public(of: type) -> list[str]:
    """Return the public methods and properties of a class that it or a base of ours has."""
    kinds = (FunctionType, classmethod, staticmethod, property, cached_property)
    had = {
        name: one
        for base in reversed(of.__mro__)
        if base.__module__.startswith("specopt")
        for name, one in vars(base).items()
    }
    return [
        name for name, one in had.items() if not name.startswith("_") and isinstance(one, kinds)
    ]


def _entry(level: str, name: str, found: Any) -> Iterator[str]:
    """Yield a heading, the signature if there is one, and the docstring as Markdown."""
    found = getattr(found, "__func__", found)  # of class methods
    yield from (f"{level} `{name}`", "")
    is_enumeration = hasattr(found, "__members__")
    is_error = isinstance(found, type) and issubclass(found, Exception)
    if callable(found) and not is_enumeration and not is_error:
        yield from ("```python", _signature(name, found), "```", "")
    if inspect.getdoc(found):
        yield from (*_docstring(inspect.getdoc(found) or ""), "")
    if is_enumeration:
        yield from (", ".join(f"`{value}`" for value in found), "")


class _Bare(str):
    """An annotation without its quotes."""

    def __repr__(self) -> str:
        return str(self)


def _accepted(annotation: str) -> str:
    """Return the type that the constructor accepts for a field: of `Given[held, accepted]` the
    second.
    """
    if not annotation.startswith("Given["):
        return annotation
    depth = 0
    for place, character in enumerate(annotation):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 1:
            return annotation[place + 1 : -1].strip()
    return annotation


def _signature(name: str, of: Callable[..., Any]) -> str:
    """Return the signature of a function or class: in a line, or in one for each parameter."""
    signature = inspect.signature(of)
    shown = [
        one.replace(annotation=_Bare(_accepted(one.annotation)))
        if isinstance(one.annotation, str)
        else one
        for one in signature.parameters.values()
        if one.name not in ("self", "cls")
    ]
    returned = signature.return_annotation
    bare = (
        _Bare(returned)
        if isinstance(returned, str) and not isinstance(of, type)
        else signature.empty
    )
    whole = str(signature.replace(parameters=shown, return_annotation=bare))
    if len(name + whole) > 100:
        *_, end = whole.rpartition(")")
        whole = "".join(("(\n", *(f"    {part},\n" for part in _parts(shown)), ")", end))
    text = DEFAULT.sub(r"\1", whole)
    return name + text.replace("<factory>", "...")


def _parts(parameters: Sequence[inspect.Parameter]) -> Iterator[str]:
    """Yield the parameters of a signature, and the star before those that are given by name
    alone.
    """
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in (one.VAR_POSITIONAL, one.KEYWORD_ONLY)
        yield str(one)


def _docstring(text: str) -> Iterator[str]:
    """Yield a numpydoc docstring as Markdown: sections are lists, examples are code."""
    first, *sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    yield re.sub(
        r"^>>>.*?(?=\n\n|\Z)",
        r"```pycon\n\g<0>\n```",
        first.strip(),
        flags=re.DOTALL | re.MULTILINE,
    )
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        yield from ("", f"**{title}**", "")
        if title == "Examples":
            yield from ("```pycon", body.strip(), "```")
            continue
        for one in re.split(r"\n(?=\S)", body.strip()):
            name, _, meaning = one.partition("\n")
            quoted = ", ".join(f"`{part.strip()}`" for part in name.split(","))
            yield f"- {quoted}: {' '.join(textwrap.dedent(meaning).split())}".removesuffix(": ")


def filled(mark: re.Match[str], lines: Iterable[str]) -> str:
    """Return a block with its lines."""
    text = "\n".join(lines).strip()
    return f"{mark[1]}\n{text}\n\n{mark[4]}"


def with_methods(text: str) -> str:
    """Return a page with the methods of now: the site's tables need no commit."""
    return BLOCK.sub(
        lambda mark: filled(mark, methods(mark[3].strip())) if mark[2] == "methods" else mark[0],
        text,
    )


WAYS = (methods, fields, families, ledger, results, selected, commands, recorded, contents, api)
TEXTS = {way.__name__: way for way in WAYS}


@dataclass
class Page:
    """A page as it must be: its text, and the pictures that its examples show.

    Parameters
    ----------
    path
        Its file.
    """

    path: Path
    text: str = ""
    pictures: dict[Path, Picture] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.text = BLOCK.sub(self._block, self.path.read_text())

    def _block(self, mark: re.Match[str]) -> str:
        _, name, argument, _ = mark.groups()
        is_example = name == "example"
        lines = (
            self._example(mark.string[: mark.start()])
            if is_example
            else TEXTS[name](argument.strip(" ").rstrip())
        )
        return filled(mark, lines)

    def _example(self, before: str) -> Iterator[str]:
        """Yield what the last block of code before a mark prints, and the picture that it ends
        with.
        """
        *_, code = CELL.findall(before)
        tree = ast.parse(code)
        ends = isinstance(tree.body[-1], ast.Expr) and tree.body.pop()
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(tree, self.path.name, "exec"), self.names)
            shown = eval(ast.unparse(ends.value), self.names) if ends else None
        if out.getvalue():
            yield from ("```text", out.getvalue().rstrip(), "```")
        if isinstance(shown, Picture):
            self.pictures[self.path.with_suffix(".svg")] = shown
            yield f"![Picture of the plan in the example]({self.path.stem}.svg)"


def digest(picture: Picture) -> str:
    """Return the last line of a picture's file: a digest of its data and specification."""
    return DIGEST.format(
        hashlib.sha256(json.dumps(picture.to_dict(), sort_keys=True).encode()).hexdigest()
    )


def is_current(path: Path, picture: Picture) -> bool:
    """Whether a file shows a picture's data by its specification."""
    return path.exists() and path.read_text().endswith(digest(picture))


def pages() -> list[Path]:
    """Return the pages with something to write."""
    return [path for path in sorted(HERE.rglob("*.md")) if "<!-- generated: " in path.read_text()]


def write() -> None:
    """Write what changed."""
    drawn = {HERE / name: picture() for name, picture in PICTURES.items()}
    for page in map(Page, pages()):
        if page.text != page.path.read_text():
            page.path.write_text(page.text)
            print(page.path.relative_to(HERE.parent))
        drawn |= page.pictures
    for path, picture in drawn.items():
        if not is_current(path, picture):
            picture.save(path)
            path.write_text(path.read_text().rstrip() + "\n" + digest(picture))
            print(path.relative_to(HERE.parent))


if __name__ == "__main__":
    write()
