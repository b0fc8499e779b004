"""Nasty text wherever a file may hold text: all that is printed can be shown, and no text forges a
line.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fuzz.input_files import (
    AZURE,
    CONFIG,
    HISTOGRAM,
    PLAIN,
    RUNTIME,
    SCRAPE,
    TABLE,
    known_files,
    problem,
    records,
    result,
)
from fuzz.outcome import check_printed
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specopt.commands.cli import run
from specopt.console.terminal import console, line, sentence, table, title

pytestmark = pytest.mark.nightly

NASTY = (
    "\x1b[31m",
    "\x1b]0;t\x07",
    "\x1b]8;;http://x\x1b\\",
    "\x9b2J",
    "\x7f",
    "\x85",
    "\u2028",
    "\u202e",
    "\u2066",
    "\r",
    "\n",
    "\t",
    "\b",
    "\0",
    "[red]",
    "[/]",
    "[link=file:///etc]",
    ":boom:",
    "{}",
    "%s",
    "\\x1b",
)
texts = (
    st.lists(st.sampled_from(NASTY) | st.text(max_size=3), min_size=1, max_size=6)
    .map("".join)
    .filter(
        lambda text: text.isprintable() or not any("\ud800" <= char <= "\udfff" for char in text)
    )
)
few = settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SGR = re.compile(r"\x1b\[[0-9;]*m")


def changed(source: str, **changes: Any) -> str:
    """Return a JSON text with fields of its object replaced."""
    return json.dumps(json.loads(source) | changes)


def with_cell(source: str, row: int, column: int, text: str) -> str:
    """Return CSV with a cell replaced, quoted as a CSV writer does."""
    rows = list(csv.reader(io.StringIO(source)))
    rows[row][column] = text
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return out.getvalue()


def record_with(text: str) -> str:
    """Return records of a comparison whose texts are all replaced."""
    first = json.loads(records().splitlines()[0])
    changes = {
        "instance": text,
        "error": text,
        "host": text,
        "versions": {text: text},
        "status": "failed",
    }
    return json.dumps(first | changes | {"objective": None, "bound": None, "gap": None}) + "\n"


SERVING, CONTROL = "serving-latency", "draft-control"
VLLM = "export vllm --max-batch 4 --runtime RUNTIME --acceptance FILE"
FIT = "fit FILE --x tokens --y time_ms"


def named(text: str) -> str:
    """Return a problem file with a name and notes."""
    return changed(problem("draft-allocation"), name=text, notes=text)


CASES: dict[str, tuple[str, Callable[[str], str]]] = {
    "solve": ("solve FILE", named),
    "solve json": ("solve FILE --json", named),
    "unknown field": ("solve FILE", lambda text: changed(problem(SERVING), **{text: text})),
    "wrong type": ("solve FILE", lambda text: changed(problem(SERVING), snr=text)),
    "kind": ("solve FILE", lambda text: changed(problem(SERVING), kind=text)),
    "sensitivity": ("sensitivity FILE --time-limit 0", named),
    "judged": ("evaluate FILE RESULT", lambda text: changed(problem(SERVING), name=text)),
    "evaluate": (
        "evaluate PROBLEM FILE",
        lambda text: changed(
            result(SERVING),
            method=text,
            explanation=text,
            stats={text: text},
            terms={text: 1.0},
            versions={text: text},
            options={text: text},
        ),
    ),
    "foreign result": (
        "evaluate PROBLEM FILE",
        lambda text: changed(result(SERVING), problem_sha256=text),
    ),
    "simulated": (
        "simulate FILE POLICY --replications 2",
        lambda text: changed(problem(CONTROL), name=text),
    ),
    "simulate": (
        "simulate LINK FILE --replications 2",
        lambda text: changed(result(CONTROL), method=text),
    ),
    "yaml": ("export yaml FILE", lambda text: changed(result(SERVING), method=text)),
    "csv": ("export csv FILE", lambda text: changed(result(SERVING), method=text)),
    "model": (
        "model FILE",
        lambda text: json.dumps(CONFIG | {"_name_or_path": text, "torch_dtype": text}),
    ),
    "model json": ("model FILE --json", lambda text: json.dumps(CONFIG | {"_name_or_path": text})),
    "model type": ("model FILE", lambda text: json.dumps(CONFIG | {"model_type": text})),
    "model field": (
        "model FILE",
        lambda text: json.dumps(CONFIG | {text: text, "hidden_act": text}),
    ),
    "rates": (VLLM, lambda text: json.dumps(PLAIN | {"notes": [text]})),
    "scrape": (VLLM, lambda text: SCRAPE + SCRAPE.replace('"m"', json.dumps(text))),
    "histogram": (VLLM, lambda text: json.dumps({text: HISTOGRAM, "y": {text: text}})),
    "runtime": (
        "export vllm --max-batch 4 --runtime FILE --acceptance RATES",
        lambda text: json.dumps(RUNTIME | {"draft": {text: 1.0}}),
    ),
    "trace header": (
        "import FILE --as serving-latency",
        lambda text: with_cell(AZURE, 0, 1, text),
    ),
    "trace cell": ("import FILE --as serving-latency", lambda text: with_cell(AZURE, 2, 1, text)),
    "table header": (FIT, lambda text: with_cell(TABLE, 0, 1, text)),
    "table cell": (FIT, lambda text: with_cell(TABLE, 2, 1, text)),
    "table value": (
        f"{FIT} --form linear --where model=none",
        lambda text: with_cell(TABLE, 2, 0, text),
    ),
}


def printed(
    command: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """Run a command on files, and return its exit code and what it prints."""
    code = run([str(files.get(word, word)) for word in command.split()])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("name", CASES)
@few
@given(text=texts)
@example(text="".join(NASTY))
def test_all_that_is_printed_can_be_shown(
    name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that no text in a file reaches stdout or stderr but as characters that can be shown,
    nor forges a line.
    """
    command, content = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(content(text).encode("utf-8", "surrogatepass"))
        files = known_files(
            command, Path(folder), LINK=problem(CONTROL), POLICY=partial(result, CONTROL)
        )
        code, out, err = printed(command, files | {"FILE": path}, capsys)
        assert code in (0, 1, 2)
        check_printed(out)
        check_printed(err)
        if code == 2:
            assert err.count("\n") == 1


@few
@given(
    text=texts.map(lambda text: text.replace("/", "").replace("\0", "")).filter(
        lambda text: text.strip(".")
    )
)
def test_names_of_files(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the name of a file itself is shown escaped, in messages about it and where it is
    written to.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, text)
        missing = printed("model M", {"M": path}, capsys)
        written = printed("generate draft-allocation/uniform -o M", {"M": path}, capsys)
        for code, out, err in (missing, written):
            assert (code, out) in ((2, ""), (0, ""))
            check_printed(err)
            assert err.count("\n") == 1


@settings(max_examples=50)
@given(text=texts)
@example(text="".join(NASTY))
def test_on_a_terminal_only_our_colours_are_sent(text: str) -> None:
    """Tests that with colours on, the only escape sequences are colours, and those are ours
    whatever a text holds.
    """

    def shown(text: str) -> str:
        out = console()
        out.file = stream = io.StringIO()
        out._force_terminal, out._color_system = True, 1  # type: ignore[assignment]
        title(out, text, text, "red", text)
        line(out, text, text)
        sentence(out, text, "yellow")
        view = table("a", left=1)
        view.add_row(text)
        out.print(view)
        out.print(text)
        return stream.getvalue()

    coloured = shown(text)
    check_printed(SGR.sub("", coloured))
    assert set(SGR.findall(coloured)) <= set(SGR.findall(shown("plain")))
    assert SGR.search(coloured)


def test_a_comparisons_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that what a folder of records says of instances, errors and hosts is shown escaped, and
    is no path.
    """
    text = "../../" + "".join(NASTY).replace("\0", "")
    path, folder = tmp_path / "problem.json", tmp_path / "a" / "folder"
    path.write_text(changed(problem("draft-allocation"), name=text))
    folder.mkdir(parents=True)
    (folder / "records-x.jsonl").write_text(record_with(text) + '{"' + "x" * 9000 + "\n")
    command = (
        f"compare {path} --method water-level --method greedy --time-limit 2 --jobs 1 -o {folder}"
    )
    code, out, err = printed(command, {}, capsys)
    assert code == 0
    check_printed(out)
    check_printed(err)
    assert "failed: " in out
    assert {one.name for one in tmp_path.iterdir()} == {"problem.json", "a"}
    assert {one.name for one in folder.parent.iterdir()} == {"folder"}
