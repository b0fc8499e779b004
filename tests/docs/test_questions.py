"""docs/questions.md: every command prints what the page says."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from specopt.commands.cli import run

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("questions", ROOT / "docs/questions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()
PAGE = SCRIPT.PAGE.read_text()


def test_it_holds_the_questions_and_nothing_else() -> None:
    """Tests that the page has a section for each of at least 20 questions, in their order, below
    its head.
    """
    assert PAGE.startswith(SCRIPT.HEAD)
    heads = [line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")]
    assert heads == [question for question, *_ in SCRIPT.QUESTIONS]
    assert len(heads) >= 20


@pytest.mark.parametrize("question", SCRIPT.QUESTIONS, ids=lambda question: str(question[0])[:40])
def test_the_command_prints_what_the_page_says(
    question: tuple[str, str, tuple[str, ...]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that a question's command succeeds and prints its section, in which every named part
    occurs.
    """
    monkeypatch.chdir(ROOT)
    assert run(shlex.split(question[1])) == 0
    section = SCRIPT.section(*question, capsys.readouterr().out)
    assert section in PAGE
    assert all(start in section for start in question[2])
