"""Every command on every file that it reads, harmed, and wrong command lines: refused with one
line, or answered.

By default 12 cases; `numbered` says how others are chosen.
"""

from __future__ import annotations

import json
import random
import re
import time
from functools import cache
from pathlib import Path

import pytest
from fuzz.cases import harmed, harmed_bytes, harmed_lines
from fuzz.input_files import INPUT_FILES, InputFile, known_files, text_of
from fuzz.numbered import check_all, numbered
from fuzz.outcome import check_printed, check_refusal

from specopt.commands.cli import COMMANDS, run

MAX_SECONDS = 20.0
"""Of one command: a guard against what never ends."""

WRONG = (
    "-1",
    "0",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1.5",
    "",
    "-",
    "--",
    "x",
    "a=b",
    "=",
    "x" * 3000,
    "\x1b[31m",
    "a\0b",
    "/",
    ".",
    "/dev/null",
    "/nowhere/x",
    "--json",
    "--no-such-option",
    "-o",
    "é",
    "\ud800",
    "1,2",
    "[1",
    "serving-latency",
    "draft-control/alternating",
    "exact",
    "vllm",
)


def content_of(rng: random.Random, file: InputFile) -> bytes:
    """Return a file after some harm."""
    content = text_of(file.content)
    if rng.random() < 0.15:
        return harmed_bytes(rng, content.encode())
    if rng.random() < 0.4:
        return other_numbers(rng, content).encode()
    if file.is_json:
        data = json.loads(content)
        schema = (
            {"properties": {key: {"type": "object"} for key in data}}
            if isinstance(data, dict)
            else None
        )
        return harmed(rng, data, schema or {"properties": {"a": {}}}).encode(
            "utf-8", "surrogatepass"
        )
    return harmed_lines(rng, content).encode("utf-8", "surrogatepass")


def other_numbers(rng: random.Random, content: str) -> str:
    """Return a text with one to three of its numbers replaced: harm that leaves the shape of a file
    whole.
    """
    for _ in range(rng.choice((1, 1, 2, 3))):
        there = list(re.finditer(r"-?\b[0-9]+(\.[0-9]+)?(e-?[0-9]+)?\b", content))
        if there:
            at = rng.choice(there)
            near = (
                0,
                -1,
                1,
                2,
                7,
                10**6,
                2**53,
                0.0,
                -0.5,
                1e-12,
                5e-324,
                1e150,
                1e308,
                float(at[0]),
                -float(at[0]),
            )
            content = f"{content[: at.start()]}{rng.choice(near)}{content[at.end() :]}"
    return content


def wrong_line(rng: random.Random, words: list[str]) -> list[str]:
    """Return a command line after one or two mistakes; long simulations and searches cannot come of
    them.
    """
    words = list(words)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(words) + 1)
        new = [rng.choice(WRONG)]
        if rng.random() < 0.1:
            words[:1] = [rng.choice(COMMANDS).rstrip("_").replace("_", "-")]
        else:
            words[at : at + 1] = rng.choice(
                (new, new, [], new + words[at : at + 1], 2 * words[at : at + 1])
            )
        words = words or new
    return words


@cache
def places() -> list[tuple[InputFile, str]]:
    """Return every command with its file, one file after the other: neighbours have different
    files.
    """
    most = max(len(file.commands) for file in INPUT_FILES)
    return [
        (file, file.commands[n])
        for n in range(most)
        for file in INPUT_FILES
        if n < len(file.commands)
    ]


def case(number: int, folder: Path, whole: bool = False) -> list[str]:
    """Write the files of a case and return its command line: the same whenever and wherever it is
    asked for.
    """
    rng = random.Random(number)
    file, command = places()[number % len(places())]
    inside = folder / f"{number}"
    inside.mkdir(exist_ok=True)
    path = inside / file.name
    wrong = rng.random() < 0.15 and not whole
    path.write_bytes(text_of(file.content).encode() if wrong or whole else content_of(rng, file))
    found = {"FILE": path, "FOLDER": inside, "PAGE": folder / "page.html"}
    found |= known_files(command, folder, **file.others)
    words = [str(found.get(word, word)).replace("FILE@", f"{path}@") for word in command.split()]
    return wrong_line(rng, words) if wrong else words


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands write where nothing else is."""
    monkeypatch.chdir(tmp_path)


def test_every_command_that_reads_has_files() -> None:
    """Tests that no command is forgotten: what reads no file of a user is named here."""
    idle = {"methods", "schema", "warmup", "demo", "measure"}
    names = {command.rstrip("_").replace("_", "-") for command in COMMANDS}
    assert {command.split()[0] for _, command in places()} == names - idle | {"export"}


@pytest.mark.nightly
def test_whole_files_are_answered(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Tests that without harm every command answers: else it would be refused for another reason
    than the harm.
    """
    refused = {
        number: capfd.readouterr().err
        for number in range(len(places()))
        if run(case(number, tmp_path, True))
    }
    assert not refused


@pytest.mark.slow
@numbered(12)
def test_refused_or_answered(
    numbers: range, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that each case ends with 0, 1 or 2, the last with one line, and that all that is
    printed can be shown.
    """

    def check(number: int) -> None:
        words = case(number, tmp_path)
        capfd.readouterr()
        started = time.process_time()
        code = run(words)
        out, err = capfd.readouterr()
        several = words[0] == "solve" and out != ""  # files before the refused one
        if code == 2 and not several:
            check_refusal(code, out, err)
        else:
            assert code in ((0, 1, 2) if several else (0, 1)), f"exit code {code}: {err}"
            assert "Traceback" not in err and "warning: method" not in err, err
            check_printed(out)
            check_printed(err)
        assert time.process_time() - started < MAX_SECONDS, "too slow"

    def shown(number: int) -> object:
        files = (tmp_path / f"{number}").iterdir()
        return case(number, tmp_path), {path.name: path.read_bytes()[:1200] for path in files}

    check_all(numbers, check, shown)
