"""What a mutant changes: one thing in one line of the product, by its syntax."""

from __future__ import annotations

import ast
import bisect
import hashlib
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Mutant(NamedTuple):
    """A change: the function it is in, as FILE:NAME, its lines before and after, and the bytes that
    it replaces.
    """

    function: str
    was: str
    now: str
    span: tuple[int, int]
    text: bytes


SWAPS = {
    **{
        a: b
        for pair in ("< <=", "> >=", "== !=", "+ -", "* /", "and or")
        for a, b in (pair.split(), pair.split()[::-1])
    },
    **{"//": "/", "%": "*", "**": "*", "@": "*", "&": "|", "|": "&", "<<": ">>", ">>": "<<"},
    **{"is not": "is", "is": "is not", "not in": "in", "in": "not in"},
}
NAMES = {
    "min": "max",
    "max": "min",
    "all": "any",
    "any": "all",
    "minimum": "maximum",
    "maximum": "minimum",
}
OPERATORS = re.compile(
    rb"is\s+not\b|not\s+in\b|\b(?:is|in|and|or)\b|//|\*\*|<<|>>|[<>=!]=|[-+*/%@&|<>]"
)


class Changes(ast.NodeVisitor):
    """Collects the changes of a file by line: what is in the place of which bytes."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.scope: list[str] = []
        self.found: dict[int, list[tuple[str, tuple[int, int], bytes]]] = defaultdict(list)
        self.visit(ast.parse(source))

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _ends(self, node: Any) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(
            node.end_lineno, node.end_col_offset
        )

    def _put(self, start: int, end: int, text: bytes) -> None:
        self.found[bisect.bisect(self.starts, start)].append(
            (".".join(self.scope), (start, end), text)
        )

    def _between(self, left: ast.AST, right: ast.AST) -> None:
        start, end = self._ends(left)[1], self._ends(right)[0]
        operator = OPERATORS.search(self.source, start, end)
        if operator:
            swapped = SWAPS[" ".join(operator[0].decode().split())]
            self._put(*operator.span(), swapped.encode())

    def _inside(self, node: Any, *parts: ast.AST) -> None:
        self.scope.append(node.name)
        for part in (*parts, *node.body):
            self.visit(part)
        self.scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Go on with the body; what decorates a class tells how it is written, not what it does."""
        self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Go on with defaults and body, without the types."""
        self._inside(node, *node.args.defaults, *filter(None, node.args.kw_defaults))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Leave out the type."""
        if node.value:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave out what holds anyway."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave out messages."""

    def visit_Assign(self, node: ast.Assign) -> None:
        """Leave out how far to go, a constant with a name: no plan is right or wrong by it."""
        if self.scope or not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Leave out whether lengths are checked, which are the same, and whether a field is
        printed.
        """
        if node.arg not in ("strict", "repr"):
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Change every comparison."""
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self._between(left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Change the first `and` or `or`."""
        self._between(*node.values[:2])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Change an operator."""
        self._between(node.left, node.right)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Change the operator of an assignment."""
        self._between(node.target, node.value)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave out a sign, or a `not`."""
        start = self._ends(node)[0]
        self._put(start, start + (3 if isinstance(node.op, ast.Not) else 1), b"")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take another number, or the other truth."""
        value = node.value
        if isinstance(value, bool):
            self._put(*self._ends(node), str(not value).encode())
        elif isinstance(value, int | float):
            self._put(
                *self._ends(node),
                repr(value + 1 if isinstance(value, int) or not value else 2 * value).encode(),
            )

    def visit_Name(self, node: ast.Name) -> None:
        """Take the other end."""
        if node.id in NAMES:
            self._put(*self._ends(node), NAMES[node.id].encode())

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Take the other end."""
        if node.attr in NAMES:
            end = self._ends(node)[1]
            self._put(end - len(node.attr), end, NAMES[node.attr].encode())
        self.generic_visit(node)

    def _condition(self, node: Any) -> None:
        start, end = self._ends(node.test)
        self._put(start, end, b"not (" + self.source[start:end] + b")")
        self.generic_visit(node)

    visit_While = visit_IfExp = _condition

    def visit_If(self, node: ast.If) -> None:
        """Turn a condition round, but not what is for type checkers alone."""
        if not isinstance(node.test, ast.Name) or node.test.id != "TYPE_CHECKING":
            self._condition(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Turn what is chosen round."""
        for test in node.ifs:
            start, end = self._ends(test)
            self._put(start, end, b"not (" + self.source[start:end] + b")")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call whose result nobody reads."""
        if isinstance(node.value, ast.Call):
            self._put(*self._ends(node), b"None")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        """Go on instead."""
        self._put(*self._ends(node), b"continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        """Stop instead."""
        self._put(*self._ends(node), b"break")


def mutants(file: str) -> dict[int, list[Mutant]]:
    """Return the changes of a file by line."""
    source = (ROOT / file).read_bytes()
    return {
        line: [
            Mutant(f"{file}:{name}", *lines(source, span, text), span, text)
            for name, span, text in found
        ]
        for line, found in Changes(source).found.items()
    }


def lines(source: bytes, span: tuple[int, int], text: bytes) -> tuple[str, str]:
    """Return the lines that a change touches, before and after it, each as one line."""
    start, end = source.rfind(b"\n", 0, span[0]) + 1, source.find(b"\n", span[1])
    before, after = source[start:end], source[start : span[0]] + text + source[span[1] : end]
    return " ".join(before.decode().split()), " ".join(after.decode().split())


def drawn(files: list[str], count: int, seed: int) -> list[Mutant]:
    """Return changes of lines that are drawn at random, one of a line: the same ones while those
    lines stay.
    """
    every = []
    for found in (found for file in files for found in mutants(file).values()):
        every.append(
            (hashlib.sha256(f"{seed} {found[0].function} {found[0].was}".encode()).digest(), found)
        )
    every.sort(key=lambda line: line[0])
    return [found[key[0] % len(found)] for key, found in every[:count]]
