"""The product stays small: its folders keep their budget, its functions stay short, its parts know
few others.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from functools import cache

import grimp
import pytest
from helpers.size import ROOT, budget, sizes, tokens_of

PRODUCT = ("optimizer", "models", "solvers", "instances")
MAX_TOKENS, MAX_KERNEL_TOKENS = 800, 1000
"""Tokens of code of a function: how it is formatted does not matter."""

WORDS_AND_SIGNS = re.compile(r"\w+|[^\w\s]")
"""No source has more tokens than matches of this pattern, which is faster than a tokenizer."""

MAX_ROOMS, MAX_IMPORTS = 16, 66


STILL_LONG = {
    ("solvers/prompt_chunking/kernels/simulation.py", "play"),
    ("solvers/verification_batch/kernels/simulation.py", "play"),
    ("optimizer/kinds/placement/strategies.py", "problems"),
}
"""Loops over events that share their state: cut into parts they took 12 to 18 % more time. And the
fields of one problem, drawn one after the other.
"""


def test_every_folder_keeps_its_budget() -> None:
    """Tests that no folder of the product has more tokens than pyproject.toml allows."""
    found = sizes(PRODUCT)
    assert set(budget()) == set(PRODUCT)
    over = {name: (found[name], most) for name, most in budget().items() if found[name] > most}
    assert over == {}, "delete first, or raise the budget with a sentence in the changelog"


@pytest.mark.parametrize(
    ("source", "tokens"),
    [
        ("x = 1  # one\n", 3),
        ('"""What it is."""\n\n\ndef f() -> str:\n    """Say."""\n    return "a"\n', 9),
        ('x = f"{a + b!r} {c:{d}}"\n', 3),
        ("x = (\n    1,\n)\n", 6),
        ('f(\n    "a"\n    "b"\n)\n', 5),
    ],
)
def test_tokens_are_those_of_code(source: str, tokens: int) -> None:
    """Tests that comments, layout and docstrings do not count, and that an f-string counts as
    one.
    """
    assert tokens_of(source) == tokens


@cache
def _functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """Return the path, the syntax and the source of every function of the product."""
    found = []
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            lines = text.splitlines()
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    source = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
                    found.append((str(path.relative_to(ROOT)), node, source + "\n"))
    return found


def test_functions_are_short() -> None:
    """Tests that no function has more code than a reader takes in."""
    found = set()
    for path, function, source in _functions():
        limit = MAX_KERNEL_TOKENS if "/kernels/" in path else MAX_TOKENS
        if len(WORDS_AND_SIGNS.findall(source)) > limit and tokens_of(source) > limit:
            found.add((path, function.name))
    assert found == STILL_LONG


def _room(module: str) -> str:
    """Return the folder of the first level that a module lies in, or the module itself if it lies
    in none.
    """
    return ".".join(module.split(".")[:2])


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> grimp.ImportGraph:
    """What imports what, the four folders laid out as the one package that they are."""
    package = tmp_path_factory.mktemp("tree") / "specopt"
    package.mkdir()
    for path in (ROOT / "optimizer").iterdir():
        (package / path.name).symlink_to(path)
    for folder in PRODUCT[1:]:
        (package / folder).symlink_to(ROOT / folder)
    known = {
        name: module for name, module in sys.modules.items() if name.split(".")[0] == "specopt"
    }
    for name in known:
        del sys.modules[name]
    sys.path.insert(0, str(package.parent))
    try:
        return grimp.build_graph("specopt", cache_dir=None)
    finally:
        sys.path.remove(str(package.parent))
        sys.modules.update(known)


def test_few_parts_know_each_other(graph: grimp.ImportGraph) -> None:
    """Tests that the package has few folders and modules at its first level, and few imports
    between them.
    """
    imports = {
        (_room(module), _room(found))
        for module in graph.modules
        for found in graph.find_modules_directly_imported_by(module)
        if _room(module) != _room(found)
    }
    rooms = {_room(module) for module in graph.modules}
    assert len(rooms) <= MAX_ROOMS, sorted(rooms)
    assert len(imports) <= MAX_IMPORTS, sorted(imports)
