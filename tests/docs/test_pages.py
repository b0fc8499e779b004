"""Pages read where they lie: what is generated is committed and current, and nothing waits for a
build.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.append(str(DOCS))

import pages  # type: ignore[import-not-found]  # noqa: E402 - the folder is no package

FOLDERS = (".", "laboratory", "benchmarks/results")
TEXTS = sorted(
    [*DOCS.rglob("*.md"), *(page for at in FOLDERS for page in (ROOT / at).glob("*.md"))]
)
FENCED = re.compile(r"^( *)(`{3,}|~{3,}|:{3,})([^\n]*)\n(.*?)^\1\2 *$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)\)")


def short(path: Path) -> str:
    """Return the name of a file in the checkout."""
    return path.relative_to(ROOT).as_posix()


def prose(text: str) -> str:
    """Return Markdown without its blocks and pieces of code."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", FENCED.sub("", text))


def anchors(page: Path) -> Iterator[str]:
    """Yield the anchors of a page's headings, as code hosts make them."""
    for title in re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def broken(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead nowhere: no file, through a link of the file system, or
    no such heading.
    """
    found = []
    for link in LINK.findall(prose(text)):
        name, _, anchor = link.partition("#")
        target = Path((page.parent / name).as_posix()) if name else page
        if "://" not in link and (
            not target.exists()
            or (name and target.resolve() != Path(os.path.normpath(target)))
            or (anchor and anchor not in anchors(target))
        ):
            found.append(link)
    return found


def hidden(text: str) -> list[str]:
    """Return what a reader sees nothing of until a build fills it in: directives, roles, empty
    blocks.
    """
    blocks = [
        fence[2].strip()
        for fence in FENCED.findall(text)
        if fence[2].strip().startswith("{") or not fence[3]
    ]
    roles = re.findall(r"(?<!\S)\(?(\{[\w:+-]+\}`[^`]*`)", FENCED.sub("", text))
    empty = [first.strip() for first, _, _, body in _generated(text) if not body.strip()]
    return blocks + roles + empty


def _generated(text: str) -> list[tuple[str, str, str, str]]:
    return re.findall(r"(<!-- generated: (\w+)(.*?)-->)\n(.*?)<!-- end -->", text, re.DOTALL)


def methods_listed(text: str) -> set[str]:
    """Return the lines of a page's tables of methods."""
    return {
        line
        for _, name, _, body in _generated(text)
        if name == "methods"
        for line in body.splitlines()
    }


def without_methods(text: str) -> str:
    """Return a page without its tables of methods."""
    return re.sub(r"(<!-- generated: methods .*?-->).*?<!-- end -->", r"\1", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", pages.pages(), ids=short)
def test_what_is_generated_is_current(page: Path) -> None:
    """Tests that a page says what code and records say now, and that its examples print and draw
    it: `make pages`.

    A table of methods may lack new methods: the site adds them.
    """
    again = pages.Page(page)
    assert without_methods(again.text) == without_methods(page.read_text()), "make pages"
    assert methods_listed(page.read_text()) <= methods_listed(again.text), "make pages"
    assert [
        short(path)
        for path, picture in again.pictures.items()
        if not pages.is_current(path, picture)
    ] == []


@pytest.mark.parametrize("name", pages.PICTURES)
def test_pictures_are_current(name: str) -> None:
    """Tests that a picture was drawn from the data and the specification of now: `make pages`."""
    assert pages.is_current(DOCS / name, pages.PICTURES[name]()), "make pages"


def test_what_is_stale_is_seen(tmp_path: Path) -> None:
    """Tests that an old block is written anew and text beside it is not, and that pictures of other
    data are old.
    """
    page = tmp_path / "page.md"
    page.write_text("Ours.\n<!-- generated: ledger -->\n| stale |\n<!-- end -->\nOurs, too.\n")
    text = pages.Page(page).text
    assert text.startswith("Ours.\n<!-- generated: ledger -->\n") and text.endswith(
        "\n<!-- end -->\nOurs, too.\n"
    )
    assert "stale" not in text and "[paper-5]" in text
    load = pages.PICTURES["load.svg"]()
    charts = load.charts[:1]
    assert not pages.is_current(
        DOCS / "load.svg", type(load)(charts, columns=load.columns, width=load.width)
    )


@pytest.mark.parametrize("page", TEXTS, ids=short)
def test_it_reads_without_a_build(page: Path) -> None:
    """Tests that a page hides nothing, and that its links and pictures lead to what is there."""
    text = page.read_text()
    assert hidden(text) == []
    assert broken(page, text) == []


def test_readme_leads_to_these_pages() -> None:
    """Tests that what the README links to, and what that links to, is among the pages tested here,
    or no page.
    """
    seen, new = set(), [ROOT / "README.md"]
    while new:
        page = new.pop()
        seen.add(page)
        links = {
            (page.parent / link.partition("#")[0]).resolve()
            for link in LINK.findall(prose(page.read_text()))
            if "://" not in link
        }
        new += [link for link in links - seen if link.suffix == ".md" and link.exists()]
    assert len(seen) > 20
    assert seen <= set(TEXTS)


def test_what_hides_is_found() -> None:
    """Tests that each of the ways to hide something, or to lead nowhere, is noticed."""
    page = DOCS / "index.md"
    assert hidden("```{methods} placement\n```\n") == ["{methods} placement"]
    assert hidden("::::{admonition} Title\nText\n::::\n") == ["{admonition} Title"]
    assert hidden("See {doc}`there <../there>`.\n") == ["{doc}`there <../there>`"]
    assert hidden("```text\n```\n") == ["text"]
    assert hidden("<!-- generated: ledger -->\n<!-- end -->\n") == ["<!-- generated: ledger -->"]
    assert broken(
        page,
        "[a](none.md) [b](start.md#none) [c](tutorials/tuning.ipynb) [d](start.md) `[e](no.md)`",
    ) == [
        "none.md",
        "start.md#none",
        "tutorials/tuning.ipynb",
    ]


def test_the_site_has_what_pages_leave_to_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that Sphinx gets trees of contents, files in the place of links to them, and notebooks
    in its folder.
    """
    site = ModuleType("conf")
    monkeypatch.setattr(sys, "path", [*sys.path])
    vars(site).update(__file__=str(DOCS / "conf.py"))
    exec(compile((DOCS / "conf.py").read_text(), "conf.py", "exec"), vars(site))
    for name, part in (
        ("index", "\n:caption: Using it\n\nstart.md\n"),
        ("house", "```{include} ../CONTRIBUTING.md\n"),
        ("tutorials", "\ntutorials/tuning.ipynb\n"),
        ("verification-server/README", "{literalinclude}"),
        ("tune-an-engine", "{doc}`tutorial </tutorials/tuning>`"),
    ):
        source = [(DOCS / f"{name}.md").read_text()]
        assert part not in source[0]
        site.for_the_site(None, name, source)
        assert part in source[0]


def test_the_site_lists_all_methods() -> None:
    """Tests that the site's table of methods has the methods of now, whatever the page says."""
    page = "<!-- generated: methods placement -->\n\n| old |\n\n<!-- end -->\n| ours |\n"
    start, _, end = page.partition("| old |")
    assert pages.with_methods(page) == start + "\n".join(pages.methods("placement")) + end
