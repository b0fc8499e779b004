"""Records on disk: what is written is read again, whatever else lies in the folder."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.records import kept

from specopt import InvalidInput, generate
from specopt.comparison.cell import Cell, Record
from specopt.comparison.store import Store
from specopt.solvers.draft_allocation.greedy import Greedy

CELL = Cell.of(
    "b", generate("draft-allocation/uniform", seed=1), Greedy(), 0.2, 0.0, 0, {"specopt": "1"}
)
RECORD = Record.of(CELL, status="optimal", objective=2.5, bound=2.5, versions={"specopt": "1"})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Tests that records come back as they were, one line each, and that the first of a cell
    counts.
    """
    other = replace(
        RECORD,
        key="other",
        instance="\u0000\u00e4\n",
        objective=None,
        status="failed",
        error="by exit code 1",
    )
    folder = tmp_path / "made" / "on the way"
    assert Store(folder).damaged == []
    path = kept(folder, RECORD, other, replace(RECORD, objective=3.0))
    assert len(path.read_bytes().splitlines()) == 3
    assert Store(folder).records() == {RECORD.key: RECORD, "other": other}


def test_writers_have_files_of_their_own(tmp_path: Path) -> None:
    """Tests that two stores of one folder never share a file, and that each reads the records of
    both.
    """
    stores = [Store(tmp_path) for _ in range(2)]
    for key, store in zip("ab", stores, strict=True):
        store.append(replace(RECORD, key=key))
        store.append(replace(RECORD, key=key * 2))
    for store in stores:
        assert set(store.records()) == {"a", "aa", "b", "bb"}
        store.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 2
    assert all(f"-{os.getpid()}-" in name for name in names), "who wrote what can be told"


def test_an_empty_file_is_removed(tmp_path: Path) -> None:
    """Tests that a store that wrote nothing leaves nothing, one that did leaves it, and closing
    twice is no error.
    """
    store = Store(tmp_path)
    store.open()
    assert len(list(tmp_path.iterdir())) == 1
    store.close()
    store.close()
    assert list(tmp_path.iterdir()) == []
    store.append(RECORD)
    store.close()
    assert len(list(tmp_path.iterdir())) == 1
    Store(tmp_path).close()
    store.open()
    os.unlink(store._path)
    store.close()


def test_records_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that every record is written through to the disk, also where the system takes it in
    small parts.
    """
    flushed: list[int] = []
    fsync, write = os.fsync, os.write

    def watched(file: int) -> None:
        flushed.append(os.fstat(file).st_size)
        fsync(file)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:100]))
    path = kept(tmp_path, RECORD, RECORD)
    assert flushed == [path.stat().st_size // 2, path.stat().st_size]
    assert Store(tmp_path).records() == {RECORD.key: RECORD}


def test_what_is_written_is_json_that_others_can_read(tmp_path: Path) -> None:
    """Tests that no number is written that JSON has not, and that the umask alone keeps others from
    reading.
    """
    before = os.umask(0o022)
    try:
        path = kept(tmp_path, RECORD)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(ValueError, match="JSON"):
        Store(tmp_path).append(replace(RECORD, objective=float("nan")))


def test_torn_lines_are_skipped(tmp_path: Path) -> None:
    """Tests that a line torn by a kill is passed over in silence, and that a line that is no record
    is named.
    """
    path = kept(tmp_path, RECORD)
    path.write_bytes(b"[1]\n" + path.read_bytes() + path.read_bytes()[:40])
    store = Store(tmp_path)
    for _ in range(2):
        assert list(store.records()) == [RECORD.key]
        assert store.damaged == [
            f"{path}:1: invalid record (the top level: expected object, got [1] (array))"
        ]


def harmed() -> dict[str, bytes]:
    """Lines that are no record, made from one that is."""
    whole = RECORD.to_dict()
    line = json.dumps(whole).encode()
    made: dict[str, Any] = {
        "wrong type": whole | {"seconds": "fast"},
        "negative seconds": whole | {"seconds": -1.0},
        "a limit below 0": whole | {"time_limit": -1.0},
        "no scale": whole | {"kind": "fair-goodput", "scale": [1.0]},
        "a scale of nothing": whole | {"kind": "fair-goodput", "scale": [0.0, 1.0]},
        "no options": whole | {"options": [1]},
        "foreign kind": whole | {"kind": "../../etc"},
        "escape in a status": whole | {"status": "\x1b[2Joptimal"},
        "missing": {name: value for name, value in whole.items() if name != "key"},
        "a list": [whole],
        "a versions list": whole | {"versions": ["1"]},
    }
    lines = {name: json.dumps(value).encode() for name, value in made.items()}
    return lines | {
        "deep": b"[" * 100_000,
        "not JSON": line[:-20],
        "NaN": line.replace(b'"wall_seconds": ', b'"wall_seconds": NaN, "x": '),
        "binary": b"\xff\xfe\x00",
        "huge": b'{"key": ' + b"9" * 5000 + b"}",
        "empty": b"",
    }


@pytest.mark.parametrize("name", harmed())
def test_damaged_lines_are_named(name: str, tmp_path: Path) -> None:
    """Tests that each damaged line is reported by file and line in printable text, and hides no
    other.
    """
    path = kept(tmp_path, RECORD)
    path.write_bytes(
        path.read_bytes()
        + harmed()[name]
        + b"\n"
        + path.read_bytes().replace(b'"key": "', b'"key": "x')
    )
    store = Store(tmp_path)
    assert list(store.records()) == [RECORD.key, "x" + RECORD.key]
    (message,) = store.damaged
    assert message.startswith(f"{path}:2: invalid record (")
    assert message.isprintable() and len(message) < 600


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    """Tests that folders and files of other names in the folder count for nothing."""
    path = kept(tmp_path, RECORD)
    (tmp_path / "records-folder.jsonl").mkdir()
    (tmp_path / "notes.jsonl").write_text("none\n")
    store = Store(tmp_path)
    assert list(store.records()) == [RECORD.key] and store.damaged == []
    assert path.exists()


def test_refused_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a folder that cannot be created, read or written is refused by name with the
    reason.
    """
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InvalidInput, match=r"^\S*/file/out: cannot be created \(Not a directory\)$"
    ):
        Store(tmp_path / "file" / "out")
    with pytest.raises(InvalidInput, match=r"cannot be created \(embedded null byte\)$"):
        Store("a\0b")
    store = Store(tmp_path / "gone")
    store.folder.rmdir()
    for call in (store.open, lambda: store.append(RECORD)):
        with pytest.raises(
            InvalidInput,
            match=r"/gone/records-\S*: cannot be written \(No such file or directory\)$",
        ):
            call()

    def refuse(*_: object) -> None:
        raise OSError("no reason")

    store = Store(tmp_path)
    store.open()
    for name, call, message in (
        ("write", lambda: store.append(RECORD), r"records-\S*: cannot be written \(no reason\)$"),
        ("open", Store(tmp_path).open, r"records-\S*: cannot be written \(no reason\)$"),
    ):
        with monkeypatch.context() as patch, pytest.raises(InvalidInput, match=message):
            patch.setattr(os, name, refuse)
            call()
    store.close()
    monkeypatch.setattr(Path, "glob", refuse)
    with pytest.raises(InvalidInput, match=f"^{tmp_path}: cannot be read \\(no reason\\)$"):
        Store(tmp_path).records()
