"""What the printed tables of paper 2 imply of each other."""

from __future__ import annotations

import pytest

from specopt.reproductions.paper_2_tables import audit
from specopt.reproductions.statements import Finding

ROWS = [row for number in ("4", "5", "6", "7", "12") for row in audit(number)]


def rows(table: str, text: str) -> list[Finding]:
    """The rows of a table whose quantity contains a text."""
    return [row for row in ROWS if row.said.place == table and text in row.said.statement]


def test_table_4_follows_from_table_10() -> None:
    """Tests that every printed rate is the one of the printed counts, and that the sets of tokens differ."""
    assert len(rows("Table 4", "")) == 20
    assert all(row.agrees for row in rows("Table 4", ""))
    (one,) = rows("Table 10", "")
    assert not one.agrees and one.ours == 178


def test_table_5_has_one_wrong_gain() -> None:
    """Tests that the third gain is 40.4 %, not 44.7 %, and that the others are what was printed."""
    gains = rows("Table 5", "gain")
    assert [row.agrees for row in gains] == [True, True, False, True]
    assert [row.ours for row in gains] == [54.8, 50.0, 40.4, 34.0]
    assert "40.4 %" in gains[2].note


def test_table_5_is_no_per_token_rate() -> None:
    """Tests that read as a fraction the rates give more tokens per round than read as per-token rates."""
    readings = rows("Table 5", "window 8")
    assert len(readings) == 4
    for row in readings:
        assert row.said.printed > row.ours
    assert "0.73" in readings[0].note


def test_table_6() -> None:
    """Tests that the gains follow, and that from four to eight devices goodput more than doubles."""
    assert all(row.agrees for row in rows("Table 6", "gain"))
    (one,) = rows("Table 6", "over")
    assert not one.agrees and one.ours == pytest.approx(2.66)


def test_table_7() -> None:
    """Tests that the table is possible in itself and that the text beside it quotes another fit."""
    assert all(row.agrees for row in rows("Table 7", "adjusted") + rows("Table 7", "largest"))
    assert [row.agrees for row in rows("Table 7", "R2 in")] == [False, True]
    assert not any(row.agrees for row in rows("Table 7", "MA") if " in " in row.said.statement)


def test_the_coefficients_contradict_each_other() -> None:
    """Tests that the two sets differ by factors both ways, and that both beat an A100 on cold batches."""
    times = rows("Table 12", "by Sec. 4.4")
    ratios = [row.ours / row.said.printed for row in times]
    assert min(ratios) < 0.65 and max(ratios) > 1.8
    cold = [row for row in times if "cold" in row.said.statement]
    assert len(cold) == 3
    assert all("Sec. 4.4" in row.note.split("impossible")[1] for row in cold)
    assert all("Table 12 and" in row.note for row in cold)
    (a,) = rows("Table 12", "seconds_per_new_token")
    assert not a.agrees and "times the hardware's peak" in a.note
    (read,) = rows("Table 12", "seconds_per_cached_token")
    assert read.agrees
