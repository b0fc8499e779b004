"""What all views print through: text stays text, whoever wrote it."""

from __future__ import annotations

import dataclasses

import pytest

from specopt import generate, solve
from specopt.console.terminal import console, line, table, title
from specopt.views.result import print_result


def test_names_are_neither_markup_nor_control_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a problem's name is printed as it is, and that what would steer the terminal is
    shown escaped.
    """
    problem = dataclasses.replace(
        generate("draft-allocation/ties"), name="[bold]a[/nothing] :smile: \x1b[2J\tb"
    )
    print_result(problem, solve(problem), console())
    out = capsys.readouterr().out
    assert "[bold]a[/nothing] :smile: \\x1b[2J" in out
    assert "\x1b" not in out


def test_every_way_to_print_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that titles, lines, tables and bare text escape alike, keep their line breaks, and cut
    nothing.
    """
    out = console()
    title(out, "one ", "\x1b[1mtwo")
    line(out, "three", "\x9bfour")
    view = table("five", "six", left=1)
    view.add_row("\x1b]0;seven", "eight")
    out.print(view)
    out.print(f"nine\n{'x' * 5000}", soft_wrap=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["one \\x1b[1mtwo", "  three           \\x9bfour"]
    assert "\\x1b]0;seven" in lines[3]
    assert lines[4:] == ["nine", "x" * 5000]


def test_tables_are_not_cut_outside_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that every cell of a wide table is printed whole, on one line."""
    names = [letter * 60 for letter in "abcd"]
    view = table(*names, left=1)
    view.columns[0].no_wrap = False
    view.add_row(*reversed(names))
    console().print(view)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [names, names[::-1]]
