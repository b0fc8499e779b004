"""README.md: its commands and length. Its Python example is a doctest."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from helpers.sentences import sentences, words

from specopt.commands.cli import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
((COMMAND, OUTPUT),) = re.findall(r"^\$ specopt (.*)\n((?:(?!```).*\n)*)", README, re.MULTILINE)


def test_it_is_short() -> None:
    """Tests that it has at most 500 words outside code and tables."""
    assert sum(map(words, sentences(README))) <= 500


def test_its_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that every command succeeds, and that the example prints the output that is shown."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    commands = [*re.findall(r"`specopt ([^`]*)`", README), COMMAND]
    assert [command.split()[0] for command in commands] == ["tune", "generate", "solve", "tune"]
    for command in commands:
        assert run(shlex.split(command)) == 0
    printed = capsys.readouterr().out
    assert doctest.OutputChecker().check_output(f"...{OUTPUT}", printed, doctest.ELLIPSIS)
