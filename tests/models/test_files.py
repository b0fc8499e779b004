"""Files: every refusal says which field, what was expected and what came; writing is all or
nothing.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from small_instances.serving_latency import BY_HAND

from specopt import InvalidInput, Result, generate, load, save, solve
from specopt.models import files
from specopt.models.errors import NotWritten
from specopt.models.files import csv_text, from_dict, write_text, written_cell

BASE: dict[str, Any] = BY_HAND | {
    "kind": "serving-latency",
    "verify": {
        "cost": "exact",
        "layers": 1,
        "hidden": 1,
        "ffn": 1,
        "heads": 1,
        "kv_heads": 1,
        "head_dim": 1,
        "gated": False,
        "vocabulary": 5,
        "tied": True,
    },
    "draft_runtime": {
        "pieces": [{"seconds_per_flop": 0.0, "overhead_seconds": seconds} for seconds in (1.0, 2.0)]
    },
}
MISSING = object()


def changed(path: str, value: object) -> dict[str, Any]:
    """The base problem with one value, at a path such as draft_runtime.pieces[1].overhead_seconds,
    replaced.
    """
    data = copy.deepcopy(BASE)
    steps: list[str | int] = [
        int(step) if step.isdigit() else step for step in re.findall(r"\w+", path)
    ]
    place: Any = data
    for step in steps[:-1]:
        place = place[step]
    if value is MISSING:
        del place[steps[-1]]
    else:
        place[steps[-1]] = value
    return data


REFUSED: list[tuple[str, object, str]] = [
    ("draft.heads", 1, "draft.heads: unknown field"),
    (
        "verify_runtime.pieces",
        [],
        "verify_runtime.(overhead_seconds|seconds_per_flop): unknown field",
    ),
    (
        "draft_runtime.pieces[1].overhead_seconds",
        MISSING,
        "draft_runtime.pieces[1].overhead_seconds: required field is missing",
    ),
    ("draft_runtime.pieces[0]", 3, "draft_runtime.pieces[0]: expected .*object.*, got .*int"),
    ("format", "specopt/2", "format: expected 'specopt/1', got 'specopt/2'"),
    ("kind", "serving", "kind: expected one of .*serving-latency.*, got 'serving'"),
    ("input_tokens", [3, None], "input_tokens[1]: expected .*int.*got .*null"),
    ("output_tokens", [4], "output_tokens: expected 2 entries, as in input_tokens, got 1"),
    ("snr", [1.0, 3.0, 2.5], "snr: expected 2 entries, as in input_tokens, got 3"),
]
"""Test_domains has the values outside the domain of every field, test_fields the messages."""


@pytest.mark.parametrize(("path", "value", "message"), REFUSED)
def test_refusals_name_the_field(path: str, value: object, message: str, tmp_path: Path) -> None:
    """Tests that a file with one wrong field is refused with the file, the field, what was expected
    and what came.
    """
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(changed(path, value)))
    with pytest.raises(InvalidInput) as caught:
        load(file)
    text = str(caught.value)
    assert text.startswith(f"{file}: ")
    pattern = re.sub(r"\[(\d)\]", r"\\[\1\\]", message)
    assert re.match(pattern, text.removeprefix(f"{file}: ")), text
    assert "Traceback" not in text and "msgspec" not in text and "`" not in text


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
        ("1e400", r"snr\[1\]: expected .*, got inf"),
    ],
)
def test_numbers_that_are_not_finite(token: str, message: str, tmp_path: Path) -> None:
    """Tests that NaN and infinities are refused, also those that JSON text can smuggle in as
    1e400.
    """
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(BASE | {"snr": [1.0, "@"]}).replace('"@"', token))
    with pytest.raises(InvalidInput, match=message):
        load(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a JSON document in UTF-8"),
        (b"not json", "expected a JSON document in UTF-8"),
        (b'{"kind": "serving-latency"', "expected a JSON document in UTF-8"),
        (b"\xef\xbb\xbf{}", "expected a JSON document in UTF-8: .*BOM"),
        (b"\xff\xfe{\x00}\x00", "expected a JSON document in UTF-8"),
        (b'{"kind": "a", "kind": "b"}', "field 'kind' appears twice"),
        (
            b'{"kind": "serving-latency", "draft": {"layers": 1, "layers": 2}}',
            "field 'layers' appears twice",
        ),
        (b"[]", "the top level: expected an object, got \\[\\]"),
        (b"{}", "kind: required field is missing"),
        (b'{"kind": "\\ud800"}', "an unpaired surrogate is not valid Unicode"),
        (b"[" * 100_000, "expected a JSON document in UTF-8"),
    ],
)
def test_files_that_are_no_problem(content: bytes, message: str, tmp_path: Path) -> None:
    """Tests that files that do not even hold an object of ours are refused."""
    file = tmp_path / "problem.json"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match=message) as caught:
        load(file)
    assert str(file) in str(caught.value)


# ------------------------------------------------------------------ writing


def test_base_survives(tmp_path: Path) -> None:
    """Tests that both cost models and runtimes survive, and that the defaults are not written
    out.
    """
    file = tmp_path / "problem.json"
    save(from_dict(BASE), file)
    assert json.loads(file.read_text()) == BASE and file.read_text().endswith("}\n")
    assert load(file) == from_dict(BASE)


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (
            OSError(28, "No space left on device"),
            NotWritten,
            r"problem.json: cannot be written \(No space left on device\)",
        ),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_failed_write_leaves_nothing(
    error: BaseException,
    raised: type[BaseException],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that an error or Ctrl-C while replacing the file keeps the old content and removes the
    temporary file.
    """
    file = tmp_path / "problem.json"
    file.write_text("old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(raised, match=message):
        save(from_dict(BASE), file)
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text() == "old"


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    """Tests that a missing folder and, where permissions mean something, a read-only one are
    refused.
    """
    with pytest.raises(InvalidInput, match=r"cannot be written \(No such file"):
        save(from_dict(BASE), tmp_path / "nowhere" / "problem.json")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(InvalidInput, match=r"cannot be written \(Permission denied"):
        save(from_dict(BASE), locked / "problem.json")


# ------------------------------------------------------------------ results


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": "great"}, "great.* at status|status: .*great"),
        ({"termination": "bored"}, "bored"),
        ({"objective": "3"}, "objective"),
        ({"colour": 1}, "colour"),
        ({"stats": {"fixed_seconds": -1.0}}, "stats.fixed_seconds: expected a finite number >= 0"),
        (
            {"stats": {"preparing_seconds": "soon"}},
            "stats.preparing_seconds: expected a finite number >= 0",
        ),
        ({"plan": {"speculation_length": 1}}, "plan.bandwidth_share: required field is missing"),
    ],
)
def test_results_are_read_strictly(changes: dict[str, Any], message: str) -> None:
    """Tests that a result file is held to its format as a problem file is."""
    problem = generate("serving-latency/paper-1", tasks=2, max_output=8)
    data = solve(problem, "algorithm-1").to_dict() | changes
    with pytest.raises(InvalidInput, match=message):
        from_dict(data)


def test_a_result_needs_only_its_plan() -> None:
    """Tests that a result may be written by hand: format, kind and plan."""
    plan = {"speculation_length": 1, "batches": [[0]], "bandwidth_share": [1.0]}
    result = from_dict({"format": "specopt/1", "kind": "serving-latency", "plan": plan})
    assert isinstance(result, Result)
    assert result.plan is not None
    assert result.plan.to_dict() == plan


def test_what_is_written_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    """Tests that a symbolic link stays one, its target is replaced with its rights kept, and a
    dangling one is made.
    """
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "made")
    write_text(dangling, "there")
    assert dangling.is_symlink() and (tmp_path / "made").read_text() == "there"


def test_what_is_no_regular_file_is_written_into(tmp_path: Path) -> None:
    """Tests that a pipe and a device take the text and stay what they are."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    found: list[str] = []
    reader.start()
    write_text(pipe, "through")
    reader.join()
    assert found == ["through"]
    assert pipe.is_fifo()
    write_text("/dev/null", "nothing")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_text(tmp_path, "a folder")


def test_cells_of_tables_are_inert() -> None:
    """Tests that text that a spreadsheet would run gets an apostrophe, numbers none, and that rows
    stay rows.
    """
    texts = [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "a\r=1",
        "a\n=1",
        'a",=1',
    ]
    numbers = [-1.5, "-1.5e-3", "+2", "-.5", 3, None, "-", ""]
    (row,) = csv.reader(io.StringIO(csv_text([[*texts, *numbers]]), newline=""))
    assert row[: len(texts)] == [f"'{one}" for one in texts[:6]] + texts[6:]
    assert row[len(texts) :] == ["-1.5", "-1.5e-3", "+2", "-.5", "3", "", "-", ""]
    for text in (*texts, *numbers, "'", "''", "'=1", "'-5", "''=", "'a"):
        ((cell,),) = csv.reader(io.StringIO(csv_text([[text]]), newline=""))
        assert not isinstance(text, str) or not text or written_cell(cell) == text
    assert csv_text([["a", "b"], [1, 2]]) == "a,b\n1,2\n"


def test_stdout_by_its_names_and_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that what is written to stdout, by name, link or file, goes to its duplicate, and other
    files do not.
    """
    real = tmp_path / "real"
    link = tmp_path / "link"
    other = tmp_path / "other"
    link.symlink_to("/dev/stdout")
    other.write_text("other")
    (tmp_path / "circle").symlink_to("circle")
    with real.open("wb") as stream:
        monkeypatch.setattr(files, "stdout", stream.fileno())
        for path in ("/dev/stdout", "/proc/self/fd/1", link, real):
            assert files.is_stdout(path)
            files.write_text(path, f"{path}\n")
        for path in (other, "/dev/stderr", tmp_path / "circle", tmp_path / "none"):
            assert not files.is_stdout(path)
    assert real.read_text() == f"/dev/stdout\n/proc/self/fd/1\n{link}\n{real}\n"
    assert link.is_symlink()
