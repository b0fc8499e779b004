"""The sentences of Markdown pages, docstrings and messages, without code, formulas, tables and
literature.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
DISPLAY = re.compile(r"\$\$.*?\$\$", re.DOTALL)
LITERAL = re.compile(r"^( *)(?:\.\. [a-z]+::.*|.*::)\n(?:\s*\n|\1 +.*\n?)+", re.MULTILINE)
DOCTEST = re.compile(r"^ *>>> .*\n(?:.*\S.*\n?)*", re.MULTILINE)
TABLE = re.compile(r"^ *=+(?: +=+)+ *\n(?:.*\S.*\n?)*", re.MULTILINE)
CITED = re.compile(r"^( *)\.\. \[.*\n?(?:\1 +.*\n?)*", re.MULTILINE)
ITEM = re.compile(r"(?:[-*+]|\d+\.|\(\w\)|#\.) +")
ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|vs|al|etc|Eqs?|Secs?|Figs?|Alg|Sect|No)\.$")
END = re.compile(r"(?<=[.!?])(?<!\.\.)[)\"'”*_]*\s+(?=[\"'(“*_]*\w)")
CODE, MATH = "Code", "Formula"


def plain(text: str) -> str:
    """Return a text with one word in the place of every piece of code and formula, and no
    markup.
    """
    for pattern, word in (
        (r"<!--.*?-->", ""),
        (r"!\[[^\]]*\]\([^)]*\)", ""),
        (r"``.+?``", CODE),
        (r":math:`[^`]*`", MATH),
        (r"(?::[\w:]+:|\{\w+\})?`[^`]+`", CODE),
        (r"\$[^$]+\$", MATH),
        (r"\[([^\]]*)\]\([^)]*\)", r"\1"),
        (r"https?://\S+", "Address"),
        (r"\*\*|__", ""),
    ):
        text = re.sub(pattern, word, text, flags=re.DOTALL)
    return text


def blocks(text: str) -> Iterator[str]:
    """Yield paragraphs, headings and items of lists, each as one line."""
    block: list[str] = []
    inside = -1
    for line in [*text.splitlines(), ""]:
        body, indent = line.strip(), len(line) - len(line.lstrip())
        item = ITEM.match(body)
        marks = body.startswith(("|", "#", ":::", "---", "===", "+--")) or not body
        if block and (marks or item or (inside >= 0 and indent != inside)):
            yield " ".join(block)
            block = []
        if body.startswith("#"):
            yield body.lstrip("# ")
        elif not marks:
            inside = indent + (item.end() if item else 0)
            block.append(body[item.end() :] if item else body)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without what is no prose; an item of a list is at least one of
    its own.
    """
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    for pattern in (FENCE, DISPLAY, DOCTEST, TABLE, CITED, LITERAL):
        text = pattern.sub("\n", text)
    for block in blocks(text):
        begun = ""
        for piece in END.split(plain(block)):
            begun = f"{begun} {piece}".strip()
            if not ABBREVIATED.search(begun):
                yield begun
                begun = ""
        if begun:
            yield begun


def words(sentence: str) -> int:
    """Count the words of a sentence; numbers and pieces of code and formulas are words."""
    return sum(any(sign.isalnum() for sign in word) for word in sentence.split())


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and other strings of a module with their lines; of f-strings a word for
    every value.
    """
    parts: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            specs = [
                one.format_spec
                for one in node.values
                if isinstance(one, ast.FormattedValue) and one.format_spec
            ]
            parts.update(
                map(
                    id, [*node.values, *specs, *(part for spec in specs for part in ast.walk(spec))]
                )
            )
            yield (
                node.lineno,
                "".join(
                    str(one.value) if isinstance(one, ast.Constant) else CODE for one in node.values
                ),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, inspect.cleandoc(node.value)
