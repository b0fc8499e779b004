"""`specopt reproduce`: what it lists, writes and refuses."""

from __future__ import annotations

import csv
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from specopt.commands.cli import run
from specopt.reproductions import paper_5, theorems
from specopt.reproductions.experiment import Found
from specopt.reproductions.ledger import TITLES, entries, paper


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that without a paper, or with --list, the ledger is printed, also as JSON and for some statements."""
    assert run(["reproduce"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in TITLES)
    assert run(["reproduce", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(entries(*map(paper, TITLES))))
    assert run(["reproduce", "paper-4", "figure-1", "--list", "--json"]) == 0
    items = [entry["item"] for entry in json.loads(capsys.readouterr().out)]
    assert items and all(
        item.startswith(("figure-1a", "figure-1b", "figure-1c", "figure-1d", "figure-1.")) for item in items
    )
    assert run(["reproduce", "paper-5", "--list"]) == 0
    said = capsys.readouterr().out
    assert "theorem-1  Theorem 1: " in said and "\nWhat does not: " in said and " % of 64 [" in said


def test_one_figure_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that points, a map, the lines and a page are written, also of the real pair; statements are printed."""
    folder = tmp_path / "new" / "folder"
    assert run(["reproduce", "paper-5", "figure-2", "--quick", "-o", str(folder)]) == 0
    said = capsys.readouterr()
    assert "figure-2.aligned" in said.out and "shares mean nothing" in said.err
    names = sorted(path.name for path in folder.iterdir())
    both = {name.format(one) for one in ("figure-2", "figure-2-real") for name in ("{}.csv", "map-{}.png")}
    assert both | {"paper-5-figure-2.md"} < set(names) and len(names) == 10
    with (folder / "figure-2.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 and {"eta", "figure-2.aligned"} <= rows[0].keys()
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in names if name.endswith("png"))
    page = (folder / "paper-5-figure-2.md").read_text()
    assert "![map-figure-2](map-figure-2.png)" in page and "| eta | 0.1 | 0.01 to 0.9 |" in page


def test_audits_need_no_box_and_json_is_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a prefix means several, that --json prints JSON alone, and that there are no points to write."""
    assert run(["reproduce", "paper-2", "table-12", "--json", "-o", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"table-12.a", "table-12.batches"} <= {one["item"] for one in found}
    assert not any(one["holds"] for one in found if one["item"] == "table-12.a")
    assert all({"unit", "reason"} <= one.keys() for one in found)
    names = ["paper-2-table-12.json", "paper-2-table-12.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_theorems(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests that theorems are known as items and all together, with assumptions, and that nothing is written."""
    for name, check in theorems.CHECKS.items():
        monkeypatch.setitem(theorems.CHECKS, name, cache(check) if name[0] == "paper-2" else theorems.ramp)
    assert run(["reproduce", "paper-2", "theorem-1", "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "assuming as printed: refuted: " in said and "E[W] = 0.5 and 0.9375" in said and "::test_" in said
    assert run(["reproduce", "paper-5", "theorem-1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["item"] for one in found] == ["theorem-1", "theorem-1.true-rates", "theorem-1.consistent"]
    assert all(one["verdict"].startswith("assuming ") for one in found)
    assert run(["reproduce", "theorems", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["status"] for one in found} == {"proved", "refuted"} and len({one["paper"] for one in found}) == 4
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["paper-7"], "paper: expected one of paper-1, paper-2, paper-3, paper-4, paper-5, got 'paper-7'"),
        (["paper-3", "figure-9"], "item: expected one of abstract, proposition-1, sample-quantise, eq-13, figure-3a,"),
        (["paper-5", ""], "got ''"),
        (["paper-1", "--samples", "1"], "samples: expected at least 2, got 1"),
        (["paper-5", "--seeds", "0"], "seeds: expected at least 1, got 0"),
        (["paper-5", "--seeds", "many"], "expected an integer >= 0"),
    ],
)
def test_nonsense_is_one_message(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that unknown names and bad numbers exit with 2 and one line, and write nothing."""
    assert run(["reproduce", *arguments, "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a folder that cannot be made is named before anything is computed."""
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below"):
        assert run(["reproduce", "paper-5", "-o", str(place)]) == 2
        assert f"{place}: cannot be made" in capsys.readouterr().err


@pytest.mark.nightly
def test_interruption_keeps_what_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that Ctrl-C leaves the finished experiments and the page about them, and exits with 130."""

    def stop(*_: Any) -> Found:
        raise KeyboardInterrupt

    monkeypatch.setitem(paper_5.EXPERIMENTS, "figure-2", stop)
    assert run(["reproduce", "paper-5", "--quick", "-o", str(tmp_path)]) == 130
    assert "sec-4.iterations" in (tmp_path / "paper-5.md").read_text()
    said = capsys.readouterr()
    assert "sec-4.iterations" in said.out and said.err.endswith("specopt: interrupted\n")


def test_without_what_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that without vl-convert points and page are written, and that this is said once."""

    def little(*_: Any) -> Found:
        return Found({said.id: 1.0 for said in paper("paper-5").statements.values() if said.by})

    names = [name for name in paper_5.EXPERIMENTS if name != "printed"]
    for name in names:
        monkeypatch.setitem(paper_5.EXPERIMENTS, name, little)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert run(["reproduce", "paper-5", "--quick", "-o", str(tmp_path)]) == 0
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {*(f"{name}.csv" for name in names), "paper-5.json", "paper-5.md"}
    assert "![" not in (tmp_path / "paper-5.md").read_text()
    assert capsys.readouterr().err.count("pictures need vl-convert-python") == 1
