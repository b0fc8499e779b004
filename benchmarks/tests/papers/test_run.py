"""`benchmarks/papers/run.py`: what it lists, computes and writes."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import pytest
from papers import run, theorems
from papers.experiment import Found
from papers.ledger import RECORD, TITLES, entries, paper

pytestmark = pytest.mark.nightly


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that without a paper, or with --list, the ledger is printed, also as JSON and for some
    statements.
    """
    run.main([])
    said = capsys.readouterr().out
    assert all(name in said for name in TITLES)
    run.main(["--list", "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(entries()))
    run.main(["paper-4", "figure-1", "--list", "--json"])
    items = [entry["item"] for entry in json.loads(capsys.readouterr().out)]
    assert items and all(
        item.startswith(("figure-1a", "figure-1b", "figure-1c", "figure-1d", "figure-1."))
        for item in items
    )
    run.main(["paper-5", "--list"])
    said = capsys.readouterr().out
    assert (
        "theorem-1  Theorem 1: " in said
        and "The theorems held on every instance" in said
        and " % of 64 points [" in said
    )


def test_one_figure_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that points, a map and the lines are written, also of the real pair, and that
    statements are printed.
    """
    run.main(["paper-5", "figure-2", "--samples", "4", "-o", str(tmp_path)])
    assert "figure-2.aligned" in capsys.readouterr().out
    folder = tmp_path / "paper-5"
    names = sorted(path.name for path in folder.iterdir())
    both = {
        name.format(one)
        for one in ("figure-2", "figure-2-real")
        for name in ("{}.csv", "map-{}.png")
    }
    assert both < set(names) and len(names) == 8
    with (folder / "figure-2.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 and {"eta", "figure-2.aligned"} <= rows[0].keys()
    assert all(
        (folder / name).read_bytes().startswith(b"\x89PNG")
        for name in names
        if name.endswith("png")
    )


def test_audits_need_no_box(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the beginning of items means several, and that --json prints JSON alone."""
    run.main(["paper-2", "table-12", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {"table-12.a", "table-12.batches"} <= {one["item"] for one in found}
    assert not any(one["holds"] for one in found if one["item"] == "table-12.a")


def test_theorems(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that theorems are found as items and all together, with the assumptions of their
    checks.
    """
    for name, check in theorems.CHECKS.items():
        monkeypatch.setitem(
            theorems.CHECKS, name, cache(check) if name[0] == "paper-2" else theorems.ramp
        )
    run.main(["paper-2", "theorem-1"])
    said = capsys.readouterr().out
    assert (
        "assuming as printed: refuted: " in said
        and "E[W] = 0.5 and 0.9375" in said
        and "::test_" in said
    )
    run.main(["paper-5", "theorem-1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [one["item"] for one in found] == [
        "theorem-1",
        "theorem-1.true-rates",
        "theorem-1.consistent",
    ]
    assert all(one["verdict"].startswith("assuming ") for one in found)
    run.main(["theorems", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {one["status"] for one in found} == {"proved", "held", "refuted"} and len(
        {one["paper"] for one in found}
    ) == 4


def test_the_record_keeps_other_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that --record replaces what one experiment found, and leaves all other lines of the
    record as they are.
    """
    target = tmp_path / "record.json"
    target.write_text(RECORD.read_text())
    monkeypatch.setattr(run, "RECORD", target)
    asked = {said.id for said in paper("paper-5").of("printed")}
    monkeypatch.setitem(
        paper("paper-5").module.EXPERIMENTS, "printed", lambda *_: Found(dict.fromkeys(asked, 0.5))
    )
    run.main(["paper-5", "sec-4.iterations", "--record"])
    before, after = (path.read_text().splitlines() for path in (RECORD, target))
    changed = [
        now
        for old, now in zip(before, after, strict=True)
        if old != now and not now.startswith('"date"')
    ]
    assert {now.partition('"')[2].partition('"')[0] for now in changed} == asked


def test_an_unknown_item_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that an item that means no statement is refused with the items that there are."""
    with pytest.raises(SystemExit):
        run.main(["paper-3", "figure-9"])
    assert "item: expected one of abstract, proposition-1, " in capsys.readouterr().err
