"""docs/questions.md: every command prints what the page says."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from specopt.commands.cli import run

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))

import questions  # type: ignore[import-not-found]  # noqa: E402 - the folder is no package

pytestmark = pytest.mark.nightly


PAGE = questions.PAGE.read_text()


def test_it_holds_the_questions_and_nothing_else() -> None:
    """Tests that the page has a section for each of at least 20 questions, in their order, below
    its head.
    """
    assert PAGE.startswith(questions.HEAD)
    heads = [line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")]
    assert heads == [question for question, *_ in questions.QUESTIONS]
    assert len(heads) >= 20


@pytest.mark.parametrize(
    "question", questions.QUESTIONS, ids=lambda question: str(question[0])[:40]
)
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
    section = questions.section(*question, capsys.readouterr().out)
    assert section in PAGE
    assert all(start in section for start in question[2])
