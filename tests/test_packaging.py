"""The package as pyproject.toml describes it, and the habits that hold everywhere in it."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import specopt

ROOT = Path(__file__).parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS: dict[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
SOURCES = sorted(path for folder in FOLDERS.values() for path in (ROOT / folder).rglob("*.py"))
LABORATORY = sorted((ROOT / "laboratory").rglob("*.py"))


def test_every_subpackage_is_listed() -> None:
    """Tests that no subpackage is missing from the wheel: the editable install would not notice."""
    found = set()
    for package, folder in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join([package, *init.parent.relative_to(ROOT / folder).parts]))
    assert found == set(PYPROJECT["tool"]["setuptools"]["packages"])


def test_every_source_is_in_a_package() -> None:
    """Tests that no module lies in a folder without __init__.py."""
    assert [path for path in SOURCES if not (path.parent / "__init__.py").exists()] == []


def test_data_files_are_packaged() -> None:
    """Tests that every file that is no module matches a pattern of package-data."""
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]["*"]
    for folder in FOLDERS.values():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix not in (".py", ".pyc", ".nbi", ".nbc"):
                assert any(path.match(pattern) for pattern in patterns), path


def test_packages_are_typed() -> None:
    """Tests that the type information is announced."""
    for folder in FOLDERS.values():
        assert (ROOT / folder / "py.typed").exists()


def test_the_version_is_in_one_place() -> None:
    """Tests that no source repeats the version of pyproject.toml."""
    version = PYPROJECT["project"]["version"]
    assert specopt.__version__ == version == importlib.metadata.version("specopt")
    assert [path for path in SOURCES if version in path.read_text()] == []


def test_citation_and_changelog_agree_with_the_version() -> None:
    """Tests that CITATION.cff names the version, and that no release of the changelog is newer."""
    version = PYPROJECT["project"]["version"]
    assert re.findall(r"^version: *(\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE) == [version]
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    releases = [heading for heading in headings if heading != "Unreleased"]
    assert headings and headings.count("Unreleased") <= 1
    assert releases[:1] in ([], [version])


def test_who_made_it_is_said_alike() -> None:
    """Tests that CITATION.cff has what its format, 1.2.0, requires, with the authors that the package names."""
    import yaml

    data = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    known = {"cff-version", "message", "type", "title", "abstract", "authors", "version", "license", "keywords"}
    assert {"cff-version", "message", "title", "authors"} <= set(data) <= known
    assert data["cff-version"] == "1.2.0" and data["type"] == "software"
    assert data["authors"] == PYPROJECT["project"]["authors"]
    assert data["license"] == PYPROJECT["project"]["license"]
    assert all(isinstance(data[field], str) for field in ("message", "title", "abstract", "version"))


@pytest.mark.slow
def test_the_wheel_holds_the_package_alone(tmp_path: Path) -> None:
    """Tests that a wheel holds every source and data file of the package, no other name at its top, no laboratory."""
    keep = shutil.ignore_patterns("__pycache__", "*.pyc", "*.nbi", "*.nbc")
    for folder in FOLDERS.values():
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=keep)
    for name in ("pyproject.toml", PYPROJECT["project"]["readme"], "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    build = "from setuptools.build_meta import build_wheel; print(build_wheel('.'))"
    built = subprocess.run([sys.executable, "-P", "-c", build], cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"specopt-{PYPROJECT['project']['version']}.dist-info/METADATA").decode()
    expected = {
        f"{package.replace('.', '/')}/{path.relative_to(tmp_path / folder)}"
        for package, folder in FOLDERS.items()
        for path in (tmp_path / folder).rglob("*")
        if path.is_file()
    }
    version = PYPROJECT["project"]["version"]
    assert {name for name in names if name.startswith("specopt/")} == expected
    assert {name.partition("/")[0] for name in names} == {"specopt", f"specopt-{version}.dist-info"}
    assert not [name for name in names if "testbed" in name]
    extras = set(re.findall(r"^Provides-Extra: (\S+)$", metadata, re.MULTILINE))
    assert "report" in extras and "testbed" not in extras


def public(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The public classes, functions and methods of a module; a property's setter is its own, an overload is not."""
    for node in tree.body:
        if (
            isinstance(node, (ast.ClassDef, ast.FunctionDef))
            and not node.name.startswith("_")
            and "overload" not in map(ast.unparse, node.decorator_list)
        ):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", inner


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


def test_docstrings() -> None:
    """Tests that every module, public class, function and method says what it is, in the laboratory, too."""
    missing = [f"{path}: {name}" for path in SOURCES + LABORATORY for name, node in public(tree_of(path))
               if not ast.get_docstring(node)]  # type: ignore[arg-type]  # fmt: skip
    assert missing == []
    assert [path for path in SOURCES + LABORATORY if not ast.get_docstring(tree_of(path))] == []


def test_tests_say_what_they_test() -> None:
    """Tests that the docstring of every test begins with what it tests."""
    silent = [
        f"{path.name}: {node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if not (ast.get_docstring(node) or "").startswith("Tests that")
    ]
    assert silent == []


def test_imports_are_absolute() -> None:
    """Tests that no module imports a folder by its bare name, or the laboratory: the wheel has neither."""
    wrong: list[str] = []
    absent = ("", *FOLDERS.values(), "testbed")
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = ["." if node.level else node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            wrong += [f"{path}: {name}" for name in names if name.partition(".")[0] in absent]
    assert wrong == []
