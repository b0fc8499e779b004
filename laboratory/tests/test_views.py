"""Laboratory records as rows of tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from specopt.kinds.chart import MISSING
from testbed.__main__ import run
from testbed.views.comparison import tables_of

ROOT = Path(__file__).parents[2]


def test_intervals_and_what_is_unknown() -> None:
    """Tests that the bias has its interval except in narrow tables, and that unknown values are
    dashes.
    """
    known, unknown = (
        {"value": -0.1, "low": -0.2, "high": 0.05},
        dict.fromkeys(("value", "low", "high")),
    )
    shown = {"predictor": "model", "quantity": "total_seconds", "points": 3, "pairs": 2}
    shown |= {"median_error": known, "right_order": unknown}
    said = {
        "summaries": [shown | {"bias": known}, shown | {"bias": unknown}],
        "gains": [],
        "terms": {},
    }
    (wide,), (narrow,) = tables_of(said).values(), tables_of(said, narrow=True).values()
    assert [row["bias"] for row in wide] == ["-10.0 [-20.0, 5.0]", "-"]
    assert [row["bias"] for row in narrow] == ["-10.0", "-"]
    assert {row["median error"] for row in (*wide, *narrow)} == {"-10.0 [-20.0, 5.0]"}


def test_records_have_a_table_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the commands show shipped records as JSON and as one page, and reject one without
    plays.
    """
    folder = ROOT / "laboratory" / "records"
    records = [
        str(next(folder.glob(f"*{kind}-real.json")))
        for kind in ("draft-control", "prompt-chunking")
    ]
    assert run(["compare", *records, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [bool(one["summaries"]) for one in found] == [True, True]
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # charts take seconds
    page = tmp_path / "page.html"
    assert run(["page", *records, "-o", str(page)]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"no charts, their tables instead: {MISSING}",
        f"written to {page}",
    ]
    text = page.read_text()
    assert "Measured against predicted " in text
    for one in found:
        assert (
            f"{100 * one['summaries'][0]['median_error']['value']:.1f} % off in the median" in text
        )
    empty = tmp_path / "empty.json"
    empty.write_text(json.dumps({**json.loads(Path(records[0]).read_text()), "trials": []}))
    assert run(["page", str(empty), "-o", str(page)]) == 2
    assert capsys.readouterr().err.endswith(": expected plays, got none yet\n")
    assert run(["page", records[0], "-o", records[0]]) == 2


def test_laboratory_records_that_are_not_whole_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a record of the laboratory with a missing or wrong field is rejected with the name
    of the file.
    """
    whole = json.loads(min((ROOT / "laboratory" / "records").glob("*.json")).read_text())
    path = tmp_path / "r.json"
    damage: tuple[dict[str, Any], ...] = (
        {"trials": 3},
        {"kind": None},
        {"trials": [{}]},
        {"machine": [1]},
    )
    for changes in damage:
        path.write_text(json.dumps(whole | changes))
        assert run(["page", str(path), "-o", str(tmp_path / "page.html")]) == 2
        (said,) = capsys.readouterr().err.splitlines()
        assert said.startswith(f"testbed: {path}: ")
