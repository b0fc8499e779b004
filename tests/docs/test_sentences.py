"""Sentences are short: in the pages, in the docstrings and in the messages of the product."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.sentences import sentences, texts, words

ROOT = Path(__file__).parents[2]
MAX_WORDS = 35
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "recorded" not in path.parts),
]

PAGE = """---
format: any
---
# A heading without a stop

It begins here, e.g. with Eq. 3 of `some code. Or two`,
and ends $x = 1. Y$ here. *A second* [one. Linked](page.md)! a third?

```sh
no prose. At all
```

| a table. | Of cells. |
|---|---|

- an item
  of two lines
- another. With two sentences
1. (One in brackets.) Then 1, 2, ... and 5
"""
DOCSTRING = """Do a thing.

The form is::

    no prose. At all

===  =========
a    a table. It
===  =========

Parameters
----------
size
    How many. Up to
    three.

>>> double(2)
4

.. [1] A. Author. A title.
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            PAGE,
            [
                "A heading without a stop",
                "It begins here, e.g. with Eq. 3 of Code, and ends Formula here.",
                "*A second* one.",
                "Linked!",
                "a third?",
                "an item of two lines",
                "another.",
                "With two sentences",
                "(One in brackets.",
                "Then 1, 2, ... and 5",
            ],
        ),
        (DOCSTRING, ["Do a thing.", "Parameters", "size", "How many.", "Up to three."]),
    ],
    ids=["page", "docstring"],
)
def test_what_a_sentence_is(text: str, expected: list[str]) -> None:
    """Tests that sentences end where they do for a reader, and that code, tables and literature are
    none.
    """
    assert list(sentences(text)) == expected


def test_strings_of_a_module(tmp_path: Path) -> None:
    """Tests that docstrings and messages are found, an f-string as one text with a word for every
    value.
    """
    (tmp_path / "module.py").write_text(
        '"""A docstring."""\n\nraise ValueError(f"{name}: expected " f"{a + b:g}, got it")\n'
    )
    assert list(texts(tmp_path / "module.py")) == [
        (1, "A docstring."),
        (3, "Code: expected Code, got it"),
    ]
    assert words("Code: expected 3.5, got it - now") == 6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_of_a_page_are_short(page: Path) -> None:
    """Tests that no sentence of a page is longer than a reader takes in at once."""
    assert [one for one in sentences(page.read_text()) if words(one) > MAX_WORDS] == []


@pytest.mark.parametrize("folder", ["optimizer", "models", "solvers", "instances"])
def test_sentences_of_the_product_are_short(folder: str) -> None:
    """Tests that no sentence of a docstring or a message is longer, either."""
    assert [
        f"{path.relative_to(ROOT)}:{line}: {one}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in texts(path)
        for one in sentences(text)
        if words(one) > MAX_WORDS
    ] == []
