"""Records: begun, continued, and rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from specopt import InvalidInput
from testbed.__main__ import run
from testbed.pairs import PAIRS
from testbed.records import Record, newest, read_record

HEAD = {"kind": "serving-latency", "pair": "tiny", "settings": {"seed": 0}}


def test_a_record_goes_on_where_it_ended(tmp_path: Path) -> None:
    """Tests that saved measurements are present when the same record is begun again."""
    path = tmp_path / "record.json"
    record = Record.begin(path, HEAD)
    assert not path.exists()
    record.data["trials"].append({"measured": []})
    record.save()
    again = Record.begin(path, HEAD)
    assert again.data == record.data == read_record(path)
    assert again.data["machine"]["cores"] >= 1


def test_another_records_file_is_not_overwritten(tmp_path: Path) -> None:
    """Tests that a file with other settings is rejected, and that the message contains the
    difference.
    """
    path = tmp_path / "record.json"
    Record.begin(path, HEAD).save()
    with pytest.raises(InvalidInput, match="another settings"):
        Record.begin(path, HEAD | {"settings": {"seed": 1}})


def test_other_files_are_no_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that `compare` rejects a file that is not a record, with a message of one line."""
    path = tmp_path / "record.json"
    path.write_text('{"format": "specopt/1"}')
    assert run(["compare", str(path)]) == 2
    assert "specopt-testbed/1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "kind: expected one of"),
        (["serving-latency", "--records", "nowhere"], "nowhere: expected a folder"),
        (["serving-latency", "--set", "repeats"], "--set"),
        (["serving-latency", "--set", "repeats=x"], "expected JSON"),
        (["serving-latency", "--set", "repeat=1"], "repeat"),
        (["serving-latency", "--set", "repeats=1.5"], "repeats"),
        (["serving-latency", "--pair", "huge"], "pair"),
    ],
)
def test_impossible_plays_are_refused(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that `play` reports unsupported arguments before it starts anything."""
    folder = [] if "--records" in arguments else ["--records", str(tmp_path)]
    assert run(["play", *arguments, *folder]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_torch_one_line_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the laboratory reports its requirements if torch is missing."""
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert run(["play", "serving-latency", "--records", str(tmp_path)]) == 2
    assert capsys.readouterr().err.strip().endswith("pip install -r laboratory/requirements.txt")


def test_records_of_two_days_do_not_mix(tmp_path: Path) -> None:
    """Tests that of two records of a kind the newest complete one is used, and that a line reports
    each other one.
    """
    for day, repeats, plays in ((20, 1, 1), (21, 2, 2), (22, 1, 1), (23, 2, 1), (24, 2, 0)):
        record = Record.begin(
            tmp_path / f"2026-11-{day}-x-real.json", HEAD | {"settings": {"repeats": repeats}}
        )
        record.data["date"] = f"2026-11-{day}"
        record.data["trials"] = [
            {"scene": 0, "label": "all", "methods": ["a"], "measured": [{}] * plays}
        ]
        record.save()
    (found,), left_out = newest(tmp_path)
    assert found["date"] == "2026-11-22"
    assert [line.partition(": ")[0] for line in left_out] == [
        f"2026-11-{day}-x-real.json" for day in (20, 21, 23, 24)
    ]
    assert "there is a newer record, 2026-11-22" in left_out[0]
    assert left_out[2].endswith("got scene 1, all, a: 1 of 2 plays")
    assert left_out[3].endswith("expected plays, got none yet")


def test_help_names_the_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the help of `play` contains every available pair."""
    assert run(["play", "--help"]) == 0
    assert "|".join(PAIRS) in capsys.readouterr().out
