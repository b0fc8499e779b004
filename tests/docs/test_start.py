"""docs/start.md: for each role one path of three commands, which succeed one after the other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from specopt.commands.cli import run

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
ROLES = dict(
    re.findall(
        r"^### ([\w ]+): [^\n]*\n\n```sh\n(.*?)```$",
        (ROOT / "docs/start.md").read_text(),
        re.S | re.M,
    )
)


def test_there_are_three_roles() -> None:
    """Tests that the page has a path for each role, and each has three commands of specopt."""
    assert list(ROLES) == ["Researcher", "Operator", "Capacity planner"]
    for path in ROLES.values():
        assert [line.split()[0] for line in path.splitlines()] == ["specopt"] * 3


@pytest.mark.parametrize("role", ROLES)
def test_the_path_can_be_followed(
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that every command of a role succeeds and writes what the next one reads."""
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    monkeypatch.chdir(tmp_path)
    for line in ROLES[role].splitlines():
        words = shlex.split(line.replace("--time-limit 2", "--time-limit 0.1"))[1:]
        assert run(words) == 0, line
        assert "-o" not in words or (tmp_path / words[words.index("-o") + 1]).exists()
