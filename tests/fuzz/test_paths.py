"""Paths and names on the command line that lead nowhere: one line each, whatever the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.input_files import known_files
from fuzz.outcome import check_refusal

from specopt.commands.cli import run

FIT = "fit TABLE --x tokens --y time_ms --y-unit ms --where model=large --form linear"
READING = (
    "solve X",
    "solve PROBLEM --method local-search --warm-start X",
    "evaluate X RESULT",
    "evaluate PROBLEM X",
    "sensitivity X",
    "simulate PROBLEM X",
    "import X --as serving-latency",
    "compare X",
    "model X",
    "measure X -o NEW",
    f"{FIT.replace('TABLE', 'X')}",
    f"{FIT} --model X",
    "export vllm --runtime X --acceptance RATES",
    "export vllm --runtime RUNTIME --acceptance X",
    "export csv X",
)
WRITING = (
    "compare PROBLEM -o X",
    "solve PROBLEM -o X",
    "generate draft-allocation/uniform -o X",
    "measure CONFIG -o X",
    "import TRACE --as serving-latency -o X",
    f"{FIT} -o X",
)
NAMING = (
    "schema X",
    "generate X",
    "methods X",
    "solve PROBLEM --method X",
    "measure CONFIG --batch X -o NEW",
    "measure CONFIG --device X -o NEW",
)
NOWHERE = ("a\0b", "\x1b[31m\ud800", "x" * 5000, "P/x")
FILELESS = ("a\0b", "x" * 5000, "P/x")
"""What is neither a file nor can become one."""
ENDLESS = ("/dev/zero",)


@pytest.mark.parametrize("command", READING + WRITING + NAMING)
def test_one_line(command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Tests that paths that no file has, and devices that never end, are refused with one line."""
    files = known_files(command, tmp_path) | {"NEW": tmp_path / "new"}
    nowhere = FILELESS if command in WRITING else NOWHERE + (ENDLESS if command in READING else ())
    for text in nowhere:
        place = str(tmp_path / text) if "/" in text else text
        (tmp_path / "P").touch()
        capfd.readouterr()
        code = run(
            [place if word == "X" else str(files.get(word, word)) for word in command.split()]
        )
        out, err = capfd.readouterr()
        check_refusal(code, out, err)
