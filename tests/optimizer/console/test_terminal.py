"""What all views print through: text stays text, whoever wrote it."""

from __future__ import annotations

import pytest

from specopt.console.terminal import console, line, table, title


def test_every_way_to_print_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that titles, lines, tables and bare text escape control characters, interpret no
    markup, keep their line breaks, and cut nothing.
    """
    out = console()
    title(out, "one ", "\x1b[1mtwo")
    line(out, "three", "\x9bfour [bold]a[/nothing] :smile:")
    view = table("five", "six", left=1)
    view.add_row("\x1b]0;seven", "eight")
    out.print(view)
    out.print(f"[bold]nine[/nothing] :smile:\n{'x' * 5000}", soft_wrap=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "one \\x1b[1mtwo"
    assert lines[1] == "  three           \\x9bfour [bold]a[/nothing] :smile:"
    assert "\\x1b]0;seven" in lines[3]
    assert lines[4:] == ["[bold]nine[/nothing] :smile:", "x" * 5000]


def test_tables_are_not_cut_outside_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that every cell of a wide table is printed whole, on one line."""
    names = [letter * 60 for letter in "abcd"]
    view = table(*names, left=1)
    view.columns[0].no_wrap = False
    view.add_row(*reversed(names))
    console().print(view)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [names, names[::-1]]
