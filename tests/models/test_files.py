"""Files: every refusal says which field, what was expected and what came; writing is all or
nothing.
"""

from __future__ import annotations

import copy
import csv
import dataclasses
import io
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specopt import InvalidInput, Result, ServingLatencyProblem, generate, load, save, solve
from specopt.models import files
from specopt.models.files import csv_text, from_dict, write_text, written_cell

BASE: dict[str, Any] = {
    "format": "specopt/1",
    "kind": "serving-latency",
    "input_tokens": [3, 1, 2],
    "output_tokens": [4, 2, 1],
    "snr": [1.0, 3.0, 2.5],
    "bandwidth_hz": 32.0,
    "draft": {"layers": 1, "hidden": 1, "ffn": 1},
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
    "verify_runtime": {"seconds_per_flop": 0.0, "overhead_seconds": 10.0},
    "draft_memory_bytes": 1e6,
    "acceptance_rate": 0.5,
    "max_speculation_length": 3,
    "output_lengths": "conservative",
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
    ("bandwith_hz", 1.0, "bandwith_hz: unknown field"),
    ("draft.size", 1, "draft.size: unknown field"),
    ("draft.heads", 1, "draft.heads: unknown field"),
    (
        "verify_runtime.pieces",
        [],
        "verify_runtime.(overhead_seconds|seconds_per_flop): unknown field",
    ),
    ("draft_runtime.pieces[1].slope", 1, "draft_runtime.pieces[1].slope: unknown field"),
    ("bandwidth_hz", MISSING, "bandwidth_hz: required field is missing"),
    ("acceptance_rate", MISSING, "acceptance_rate: required field is missing"),
    ("verify.vocabulary", MISSING, "verify.vocabulary: required field is missing"),
    (
        "draft_runtime.pieces[1].overhead_seconds",
        MISSING,
        "draft_runtime.pieces[1].overhead_seconds: required field is missing",
    ),
    ("format", MISSING, "format: required field is missing"),
    ("kind", MISSING, "kind: required field is missing"),
    ("format", "specopt/2", "format: expected 'specopt/1', got 'specopt/2'"),
    ("kind", "serving", "kind: expected one of .*serving-latency.*, got 'serving'"),
    ("kind", 3, "kind: expected one of .*, got 3"),
    ("input_tokens", [3, 7.0, 2], "input_tokens[1]: expected int, got 7.0 \\(float\\)"),
    ("input_tokens", [3, True, 2], "input_tokens[1]: expected .*int.*got .*bool"),
    ("input_tokens", [3, "7", 2], "input_tokens[1]: expected .*int.*got .*str"),
    ("input_tokens", [3, None, 2], "input_tokens[1]: expected .*int.*got .*null"),
    ("input_tokens", [3, 0, 2], "input_tokens[1]: expected .*>= 1.*, got 0"),
    ("input_tokens", [3, -4, 2], "input_tokens[1]: expected .*>= 1.*, got -4"),
    ("input_tokens", 3, "input_tokens: expected .*array.*, got .*int"),
    ("input_tokens", [], "input_tokens: expected at least 1 entry, got 0"),
    ("output_tokens", [4, 2], "output_tokens: expected 3 entries, as in input_tokens, got 2"),
    ("snr", [1.0, 3.0, 2.5, 1.0], "snr: expected 3 entries, as in input_tokens, got 4"),
    ("snr", [1.0, 0.0, 2.5], "snr[1]: expected .*> 0.*, got 0.0"),
    ("snr", [1.0, [3.0], 2.5], "snr[1]: expected .*float.*got .*array"),
    ("max_speculation_length", 7.0, "max_speculation_length: expected .*int.*, got .*"),
    ("max_speculation_length", 0, "max_speculation_length: expected .*>= 1, got 0"),
    ("bandwidth_hz", -1.0, "bandwidth_hz: expected .*> 0.*, got -1.0"),
    ("bandwidth_hz", 0, "bandwidth_hz: expected .*> 0.*, got 0"),
    ("bandwidth_hz", "20e6", "bandwidth_hz: expected .*float.*, got .*str"),
    ("acceptance_rate", 0.0, "acceptance_rate: expected .*> 0.*, got 0.0"),
    ("acceptance_rate", 1.0, "acceptance_rate: expected .*< 1.*, got 1.0"),
    ("acceptance_rate", 1, "acceptance_rate: expected .*< 1.*, got 1"),
    ("draft_memory_bytes", -16e9, "draft_memory_bytes: expected .*> 0.*, got -16000000000.0"),
    ("output_lengths", "guessed", "output_lengths: .*guessed"),
    ("mechanism", "parallel", "mechanism: .*parallel"),
    ("draft.layers", 0, "draft.layers: expected .*>= 1, got 0"),
    ("draft.layers", 1.5, "draft.layers: expected .*int.*, got .*"),
    ("draft", [1], "draft: expected .*object.*, got .*array"),
    ("verify.gated", 1, "verify.gated: expected .*bool.*, got .*int"),
    ("verify.cost", "paper", "verify.cost: .*paper"),
    (
        "draft_runtime.pieces[1].overhead_seconds",
        -0.1,
        "draft_runtime.pieces[1].overhead_seconds: expected .*>= 0.*, got -0.1",
    ),
    (
        "draft_runtime.pieces[1].overhead_seconds",
        "fast",
        "draft_runtime.pieces[1].overhead_seconds: expected .*float.*, got .*str",
    ),
    ("draft_runtime.pieces[0]", 3, "draft_runtime.pieces[0]: expected .*object.*, got .*int"),
    ("draft_runtime.pieces", [], "draft_runtime.pieces: expected at least 1 entry, got 0"),
    ("name", 5, "name: expected .*str.*, got .*int"),
]


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
    ("field", "token"),
    [
        (field, token)
        for field in (
            "bandwidth_hz",
            "embedding_bits_per_token",
            "draft_memory_bytes",
            "acceptance_rate",
            "snr",
        )
        for token in ("NaN", "Infinity", "-Infinity", "1e400")
    ],
)
def test_numbers_that_are_none(field: str, token: str, tmp_path: Path) -> None:
    """Tests that NaN and infinities are refused, also those that JSON text can smuggle in as
    1e400.
    """
    value = '"@"' if field != "snr" else '[1.0, "@", 2.5]'
    text = json.dumps(BASE | {field: json.loads(value)}).replace('"@"', token)
    file = tmp_path / "problem.json"
    file.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load(file)
    if token == "1e400":
        assert f"{field}" in str(caught.value)
        assert re.search(r"expected .*, got inf", str(caught.value))
    else:
        assert token in str(caught.value)


@pytest.mark.parametrize(
    "field", ["input_tokens", "bandwidth_hz", "max_speculation_length", "snr", "draft"]
)
def test_huge_integers(field: str) -> None:
    """Tests that integers beyond 64 bits, or beyond floats, are refused rather than failing
    somewhere inside.
    """
    for huge in (2**63, 10**30, 10**400):
        if field == "bandwidth_hz" and huge < 10**400:
            continue  # a float that large is odd, but a float
        if field == "snr" and huge < 10**400:
            continue
        value: Any = {"input_tokens": [3, huge, 2], "snr": [1.0, huge, 2.5]}.get(field, huge)
        path = field
        if field == "draft":
            path, value = "draft.layers", huge
        with pytest.raises(InvalidInput, match=field):
            from_dict(changed(path, value))


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
        (b"3", "the top level: expected an object, got 3"),
        (b"null", "the top level: expected an object, got None"),
        (b"{}", "kind: required field is missing"),
        (b'{"kind": "\\ud800"}', "half of a surrogate pair is not text"),
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


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """Tests that a missing file and a folder are refused."""
    with pytest.raises(InvalidInput, match=r"nowhere.json: cannot be read \(No such file"):
        load(tmp_path / "nowhere.json")
    with pytest.raises(InvalidInput, match=r"cannot be read \(Is a directory"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("path", "value"), [(p, v) for p, v, _ in REFUSED if v is not MISSING and "." not in p]
)
def test_constructors_refuse_too(path: str, value: object) -> None:
    """Tests that what a file may not hold cannot be constructed either."""
    if path in ("format", "kind", "draft") or path.startswith("bandwith"):
        return
    problem = ServingLatencyProblem.from_dict(BASE)
    fields: dict[str, Any] = {
        field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)
    }
    with pytest.raises(InvalidInput, match=f"^{path}"):
        ServingLatencyProblem(**fields | {path: value})


def test_arrays_are_the_problems_own() -> None:
    """Tests that columns are copies, and read-only."""
    problem = ServingLatencyProblem.from_dict(BASE)
    fields: dict[str, Any] = {
        field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)
    }
    mine = np.array([3, 1, 2])
    other = ServingLatencyProblem(**fields | {"input_tokens": mine})
    mine[0] = 99
    assert other == problem
    with pytest.raises(ValueError, match="read-only"):
        other.input_tokens[0] = 99


# ------------------------------------------------------------------ writing


def test_round_trip_of_problem_and_result(tmp_path: Path) -> None:
    """Tests that what was saved is loaded, floats to the last bit."""
    problem = generate("serving-latency/paper-1", tasks=5, max_output=64, seed=4)
    result = solve(problem)
    save(problem, tmp_path / "problem.json")
    save(result, tmp_path / "result.json")
    assert load(tmp_path / "problem.json") == problem
    again = load(tmp_path / "result.json")
    assert isinstance(again, Result)
    assert again.to_dict() == result.to_dict()
    assert again.plan == result.plan
    assert (tmp_path / "problem.json").read_text().endswith("}\n")


def test_base_survives() -> None:
    """Tests that both cost models and runtimes survive, and that the defaults are not written
    out.
    """
    problem = from_dict(BASE)
    assert isinstance(problem, ServingLatencyProblem)
    assert problem.to_dict() == BASE


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that an error while replacing the file keeps the old content and removes the temporary
    file.
    """
    file = tmp_path / "problem.json"
    file.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(
        InvalidInput, match=r"problem.json: cannot be written \(No space left on device\)"
    ):
        save(from_dict(BASE), file)
    assert [path.name for path in tmp_path.iterdir()] == ["problem.json"]
    assert file.read_text() == "old"


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that Ctrl-C leaves nothing behind and is not swallowed."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(from_dict(BASE), tmp_path / "problem.json")
    assert list(tmp_path.iterdir()) == []


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
        (
            {"plan": {"speculation_length": 1, "batches": [[0, 1.0]], "bandwidth_share": [1.0]}},
            "plan.batches",
        ),
        (
            {"plan": {"speculation_length": -1, "batches": [[0]], "bandwidth_share": [1.0]}},
            "plan.speculation_length",
        ),
        (
            {"plan": {"speculation_length": 1, "batches": [[0]], "bandwidth_share": ["1"]}},
            "plan.bandwidth_share",
        ),
        (
            {"plan": {"speculation_length": 1, "batches": [[0]], "bandwidth_share": [1.0], "x": 1}},
            "plan.x: unknown",
        ),
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
    real, link, other = tmp_path / "real", tmp_path / "link", tmp_path / "other"
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
