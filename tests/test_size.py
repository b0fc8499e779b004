"""The product stays small: its folders keep their budget, its functions stay short, its parts know few others."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import grimp
import pytest
from helpers.size import ROOT, budget, sizes, tokens_of

PRODUCT = ("optimizer", "models", "solvers", "instances")
MAX_ARGUMENTS = 12
MAX_LINES, MAX_KERNEL_LINES = 60, 100
MAX_ROOMS, MAX_IMPORTS = 18, 70


STILL_LONG = {
    ("solvers/prompt_chunking/kernels/simulation.py", "play"),
    ("solvers/verification_batch/kernels/simulation.py", "play"),
}
"""Loops over events that share their state: cut into parts they took 12 to 18 % more time."""


def test_every_folder_keeps_its_budget() -> None:
    """Tests that no folder of the product has more tokens or lines than pyproject.toml allows."""
    found = sizes()
    assert set(budget()) == set(PRODUCT)
    over = {
        folder: (found[folder], allowed)
        for folder, allowed in budget().items()
        if found[folder][0] > allowed["tokens"] or found[folder][1] > allowed["lines"]
    }
    assert over == {}, "delete first, or move the table and say why in the commit"


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
    """Tests that comments, layout and docstrings do not count, and that an f-string counts as one."""
    assert tokens_of(source) == tokens


def _functions() -> list[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (path.relative_to(ROOT), node)
        for folder in PRODUCT
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return a function's lines without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def test_functions_are_short() -> None:
    """Tests that no function has more lines than a reader takes in, its docstring not counted."""
    found = {
        (str(path), function.name)
        for path, function in _functions()
        if _lines(function) > (MAX_KERNEL_LINES if "kernels" in path.parts else MAX_LINES)
    }
    assert found == STILL_LONG


def test_functions_take_few_arguments() -> None:
    """Tests that no function takes more than 12 arguments, however they are passed."""
    found = set()
    for path, function in _functions():
        given = function.args
        if len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) > MAX_ARGUMENTS:
            found.add((str(path), function.name))
    assert found == set()


def _room(module: str) -> str:
    """Return the folder of the first level that a module lies in, or the module itself if it lies in none."""
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
    known = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "specopt"}
    for name in known:
        del sys.modules[name]
    sys.path.insert(0, str(package.parent))
    try:
        return grimp.build_graph("specopt", cache_dir=None)
    finally:
        sys.path.remove(str(package.parent))
        sys.modules.update(known)


def test_few_parts_know_each_other(graph: grimp.ImportGraph) -> None:
    """Tests that the package has few folders and modules at its first level, and few imports between them."""
    imports = {
        (_room(module), _room(found))
        for module in graph.modules
        for found in graph.find_modules_directly_imported_by(module)
        if _room(module) != _room(found)
    }
    rooms = {_room(module) for module in graph.modules}
    assert len(rooms) <= MAX_ROOMS, sorted(rooms)
    assert len(imports) <= MAX_IMPORTS, sorted(imports)
