"""Paired tests of methods, by hand; tables in LaTeX and CSV; how a comparison shows itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import CommandLine
from helpers.records import kept, record

import specopt
from specopt.comparison.cell import Record
from specopt.comparison.paired import holm
from specopt.comparison.summary import pairs_of_methods
from specopt.comparison.table import Comparison


def six(worse: float = 2.0) -> list[Record]:
    """Return records of a good method and a worse one on six problems, of a third one like the
    first.
    """
    found = [record("good", f"a/{place}", 1.0) for place in range(6)] + [
        record("like", f"a/{place}", 1.0 + 1e-12) for place in range(6)
    ]
    return found + [record("worse_&_%", f"a/{place}", worse + place) for place in range(6)]


def test_pairs_are_told_apart() -> None:
    """Tests that six problems give p = 2/64, times the pairs that are left by Holm, and an interval
    round the mean.
    """
    tests = {
        (one.first, one.second): one for one in specopt.paired_tests(Comparison(six(), known={}))
    }
    gaps = [1.0 - 1.0 / (2.0 + place) for place in range(6)]
    same = tests["good", "like"]
    apart = tests["good", "worse_&_%"]
    assert (same.p_value, same.mean_difference, same.low, same.high) == (1.0, 0.0, 0.0, 0.0)
    assert apart.p_value == pytest.approx(3 * 2 / 64)
    assert apart.problems == 6 and apart.mean_difference == pytest.approx(-np.mean(gaps))
    assert apart.low is not None and apart.high is not None
    assert tests["like", "worse_&_%"].problems == 6
    assert -max(gaps) < apart.low < -np.mean(gaps) < apart.high < -min(gaps)


def test_seeds_of_a_problem_are_one_observation() -> None:
    """Tests that seeds are averaged, and that cells that one method lacks or has no plan for are
    left out.
    """
    records = [
        record("a", "a/1", 1.0),
        record("a", "a/1", 1.0, seed=1),
        record("b", "a/1", 2.0),
        record("b", "a/1", 4.0, seed=1),
    ]
    records += [record("a", "a/2", 1.0), record("b", "a/2", None), record("a", "a/3", 1.0)]
    (test,) = specopt.paired_tests(Comparison(records, known={}))
    assert (test.problems, test.mean_difference, test.low, test.p_value) == (1, -0.625, None, 1.0)
    assert (
        specopt.paired_tests(
            Comparison([record("a", "a/1", 1.0), record("b", "a/2", 1.0)], known={})
        )
        == []
    )


def test_holm_keeps_the_order_of_p_values() -> None:
    """Tests that corrected values never fall below those of smaller ones, and never pass 1."""
    assert holm([0.5, 0.01, 0.012, 0.75]) == pytest.approx([1.0, 0.04, 0.04, 1.0])


def test_pairs_as_a_table(cli: CommandLine) -> None:
    """Tests that the command prints or writes the paired tests, and that names mean nothing to
    Markdown.
    """
    kept(Path("in"), *six(2.0625))
    shown = cli("compare --table in --pairs").out
    assert "| good | worse\\_&\\_% | 6 | 0 | 0 | -0." in shown
    cli("compare --table in --pairs -o pairs.md")
    assert Path("pairs.md").read_text() == shown
    (pairs,) = cli("compare --table in --pairs --json").json.values()
    assert [row["p value"] for row in pairs] == [1.0, 3 / 32, 3 / 32]


def test_a_comparison_shows_itself() -> None:
    """Tests that it says its size in text, and shows a table per kind in a notebook."""
    found = Comparison(six(), known={})
    assert repr(found) == "<Comparison of 3 methods on 6 problems: 18 cells, 0 failed>"
    html = found._repr_html_()
    assert html is not None and html.count("<table>") == 1 and "worse_&amp;_%" in html
    assert len(found.plot().to_dict()["concat"]) == 2
    assert Comparison([])._repr_html_() == "<div class=specopt></div>"
    assert pairs_of_methods(Comparison([])) == {}
