"""The lock: what `make` installs, against what pyproject.toml declares and what is installed
here.
"""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.11", "3.12", "3.13")
LINES = [
    Requirement(line)
    for line in (ROOT / "requirements.lock").read_text().splitlines()
    if line[0] not in "# "
]


def pinned(**environment: str) -> dict[str, str]:
    """Return the versions that the lock has for an environment: the one here but for what is
    told.
    """
    return {
        line.name: str(line.specifier).removeprefix("==")
        for line in LINES
        if line.marker is None or line.marker.evaluate(environment)
    }


def required(name: str, extras: frozenset[str]) -> Iterator[str]:
    """Yield the names of all that an installed package with some extras requires here."""
    for text in importlib.metadata.requires(name) or ():
        each = Requirement(text)
        if each.marker is None or any(
            each.marker.evaluate({"extra": extra}) for extra in extras | {""}
        ):
            yield canonicalize_name(each.name)
            yield from required(each.name, frozenset(each.extras))


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("extra", ["", "docs", "browser", "dev"])
def test_what_is_declared_is_pinned_within_its_range(extra: str, python: str) -> None:
    """Tests that the lock has one version of each requirement, within its range, for every
    Python.
    """
    versions = pinned(python_version=python, python_full_version=f"{python}.99")
    for text in PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]:
        each = Requirement(text)
        assert each.name == "specopt" or each.specifier.contains(versions[each.name]), text


def test_what_is_installed_is_what_is_pinned() -> None:
    """Tests that all that `make test` installs, and what it requires in turn, has the version of
    the lock.
    """
    versions = pinned()
    installed = {
        name: importlib.metadata.version(name)
        for name in {*required("specopt", frozenset({"dev"}))}
    }
    assert len(installed) > 50
    del installed["specopt"]
    assert installed == {name: versions.get(name) for name in installed}
