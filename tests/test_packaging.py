"""The package as pyproject.toml describes it, and the habits that hold everywhere in it."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import specopt

ROOT = Path(__file__).parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS: dict[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
SOURCES = sorted(path for folder in FOLDERS.values() for path in (ROOT / folder).rglob("*.py"))


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
    assert re.findall(r"^version: *(\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE) == [
        version
    ]
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    releases = [heading for heading in headings if heading != "Unreleased"]
    assert headings and headings.count("Unreleased") <= 1
    assert releases[:1] in ([], [version])


def test_who_made_it_is_said_alike() -> None:
    """Tests that CITATION.cff has what its format, 1.2.0, requires, with the authors that the
    package names.
    """
    data = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    known = {
        "cff-version",
        "message",
        "type",
        "title",
        "abstract",
        "authors",
        "version",
        "license",
        "keywords",
    }
    assert {"cff-version", "message", "title", "authors"} <= set(data) <= known
    assert data["cff-version"] == "1.2.0" and data["type"] == "software"
    assert data["authors"] == PYPROJECT["project"]["authors"]
    assert data["license"] == PYPROJECT["project"]["license"]
    assert all(
        isinstance(data[field], str) for field in ("message", "title", "abstract", "version")
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a release is built from, in which `make dist` has run as the release workflow
    runs it.
    """
    folder = tmp_path_factory.mktemp("checkout")
    keep = shutil.ignore_patterns("__pycache__", "*.pyc", "*.nbi", "*.nbc")
    for part in FOLDERS.values():
        shutil.copytree(ROOT / part, folder / part, ignore=keep)
    (folder / "tests").mkdir()
    for name in (
        "pyproject.toml",
        PYPROJECT["project"]["readme"],
        "LICENSE",
        "MANIFEST.in",
        "Makefile",
        f"tests/{Path(__file__).name}",
    ):
        shutil.copy(ROOT / name, folder / name)
    command = ["make", "-o", ".venv/ok", f"PY={sys.executable}", "dist"]
    built = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.nightly
def test_the_wheel_holds_the_package_alone(checkout: Path) -> None:
    """Tests that a wheel holds every source and data file of the package, those in folders without
    __init__.py too, no other name at its top, no laboratory.
    """
    version = PYPROJECT["project"]["version"]
    with zipfile.ZipFile(next((checkout / "dist").glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"specopt-{version}.dist-info/METADATA").decode()
    expected = {
        f"{package.replace('.', '/')}/{path.relative_to(checkout / folder)}"
        for package, folder in FOLDERS.items()
        for path in (checkout / folder).rglob("*")
        if path.is_file()
    }
    assert {name for name in names if name.startswith("specopt/")} == expected
    assert {name.partition("/")[0] for name in names} == {"specopt", f"specopt-{version}.dist-info"}
    assert not [name for name in names if "testbed" in name]
    extras = set(re.findall(r"^Provides-Extra: (\S+)$", metadata, re.MULTILINE))
    assert "report" in extras and "testbed" not in extras


@pytest.mark.nightly
def test_the_source_distribution_holds_no_tests(checkout: Path) -> None:
    """Tests that the source distribution has the four folders of the package and what builds them,
    and no more.
    """
    with tarfile.open(next((checkout / "dist").glob("*.tar.gz"))) as source:
        tops = {name.split("/")[1] for name in source.getnames() if "/" in name}
    made = {"PKG-INFO", "setup.cfg", "specopt.egg-info"}
    assert tops - made == {
        *FOLDERS.values(),
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "MANIFEST.in",
    }


@pytest.mark.nightly
@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_both_distributions_can_be_installed(checkout: Path, pattern: str, tmp_path: Path) -> None:
    """Tests that each installs without an index, and that the package installed solves a problem
    away from here.
    """
    command = ["-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    command += [
        "--disable-pip-version-check",
        "--target",
        str(tmp_path),
        str(next((checkout / "dist").glob(pattern))),
    ]
    solve = (
        "import specopt; from specopt.commands import cli; print(specopt.__file__); "
        "cli.run(['generate', 'draft-allocation/paper-5', '-o', 'problem.json']); "
        "raise SystemExit(cli.run(['solve', 'problem.json']))"
    )
    for words in (command, ["-P", "-c", solve]):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == str(tmp_path / "specopt" / "__init__.py")
    assert "optimal" in done.stdout


def test_the_release_needs_no_password() -> None:
    """Tests that a tag is tested and built as here, and that no job but the publishing one gets a
    token.
    """
    text = (ROOT / ".github/workflows/release.yml").read_text()
    workflow = yaml.load(text, Loader=yaml.BaseLoader)
    assert workflow["on"] == {"push": {"tags": ["v*"]}}
    jobs = workflow["jobs"]
    assert set(jobs["publish"]["needs"]) == {"test", "build"}
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == [
        "publish"
    ]
    assert workflow["permissions"] == {"contents": "read"} and "secrets." not in text
    runs = {
        name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()
    }
    assert runs["test"] == [".ci/run"] and runs["build"][0] == "make dist" and runs["publish"] == []


def test_the_hosted_pages_are_those_of_make_docs() -> None:
    """Tests that the host of the documentation builds it with the command that continuous
    integration runs.
    """
    first, *_ = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())["build"]["commands"]
    assert first == "make docs"
    assert first in (ROOT / ".ci/run").read_text().splitlines()


def test_tests_say_what_they_test() -> None:
    """Tests that the docstring of every test begins with what it tests."""
    silent = [
        f"{path.name}: {node.name}"
        for folder in ("tests", "benchmarks/tests", "laboratory/tests")
        for path in sorted((ROOT / folder).rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if not (ast.get_docstring(node) or "").startswith("Tests that")
    ]
    assert silent == []
