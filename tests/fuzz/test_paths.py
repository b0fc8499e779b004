"""Paths and names on the command line that lead nowhere: one line each, whatever the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fuzz.input_files import AZURE, CONFIG, PLAIN, RUNTIME, TABLE, problem, result
from fuzz.outcome import check_refusal

from specopt.commands.cli import run

FILES = {
    "P": lambda: problem("serving-latency"),
    "R": lambda: result("serving-latency"),
    "C": lambda: json.dumps(CONFIG),
    "T": lambda: TABLE,
    "A": lambda: AZURE,
    "RUNTIME": lambda: json.dumps(RUNTIME),
    "RATES": lambda: json.dumps(PLAIN),
}
FIT = "fit T --x tokens --y time_ms --y-unit ms --where model=large --form linear"
READING = (
    "solve X",
    "solve P --method local-search --warm-start X",
    "evaluate X R",
    "evaluate P X",
    "sensitivity X",
    "simulate P X",
    "import X --as serving-latency",
    "compare X",
    "model X",
    "measure X -o NEW",
    f"{FIT.replace(' T ', ' X ')}",
    f"{FIT} --model X",
    "export vllm --runtime X --acceptance RATES",
    "export vllm --runtime RUNTIME --acceptance X",
    "export csv X",
)
WRITING = (
    "compare P -o X",
    "solve P -o X",
    "generate draft-allocation/uniform -o X",
    "measure C -o X",
    "import A --as serving-latency -o X",
    f"{FIT} -o X",
)
NAMING = (
    "schema X",
    "generate X",
    "methods X",
    "solve P --method X",
    "measure C --batch X -o NEW",
    "measure C --device X -o NEW",
)
NOWHERE = ("a\0b", "\x1b[31m\ud800", "x" * 5000, "P/x")
FILELESS = ("a\0b", "x" * 5000, "P/x")
"""What is neither a file nor can become one."""
ENDLESS = ("/dev/zero",)


@pytest.mark.parametrize("command", READING + WRITING + NAMING)
def test_one_line(command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Tests that paths that no file has, and devices that never end, are refused with one line."""
    files = {name: tmp_path / name for name in FILES if name in command.split()} | {
        "NEW": tmp_path / "new"
    }
    for name in files.keys() & FILES.keys():
        files[name].write_text(FILES[name]())
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
