"""Files that are no problems, harmed as problems are: refused with one line, or read, whatever stands in them."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
import traceback
from pathlib import Path

import pytest
from fuzz.cases import harmed, harmed_bytes, harmed_lines
from fuzz.input_files import INPUT_FILES, InputFile
from fuzz.outcome import check_printed, check_refusal

from specopt.commands.cli import run

CASES = int(os.environ.get("SPECOPT_FUZZ_FILES", "24"))
MOST_SECONDS = 20.0
"""Of one command: a guard against what never ends."""


def case(number: int, file: InputFile) -> bytes:
    """Return case so much of a file: the same bytes whenever and wherever it is asked for."""
    rng = random.Random(f"{file.name} {number}")
    content = file.content()
    if rng.random() < 0.15:
        return harmed_bytes(rng, content.encode())
    if file.is_json:
        data = json.loads(content)
        schema = {"properties": {key: {"type": "object"} for key in data}}
        return harmed(rng, data, schema).encode("utf-8", "surrogatepass")
    return harmed_lines(rng, content).encode("utf-8", "surrogatepass")


def arguments(command: str, file: Path, others: dict[str, Path]) -> list[str]:
    """Return the arguments of a command on a file."""
    paths = {"FILE": file, "FOLDER": file.parent, **others}
    return [str(paths.get(word, word)) for word in command.split()]


@pytest.mark.slow
@pytest.mark.parametrize("file", INPUT_FILES, ids=lambda file: file.name)
def test_refused_or_read(file: InputFile, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Tests that each harmed file is refused with one line, or read, and that all that is printed can be shown."""
    failures = []
    folder = tmp_path / "folder"
    others = {name: tmp_path / name.lower() for name in file.others}
    for name, path in others.items():
        path.write_text(file.others[name]())
    capfd.readouterr()
    for number in range(CASES // 6 if file.name.startswith("records") else CASES):  # a comparison each
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path = folder / file.name
        path.write_bytes(case(number, file))
        command = file.commands[number % len(file.commands)]
        started = time.process_time()
        try:
            code = run(arguments(command, path, others))
            out, err = capfd.readouterr()
            if code == 2:
                check_refusal(code, out, err)
            else:
                assert code in (0, 1), f"exit code {code}"
                check_printed(out)
                check_printed(err)
            assert time.process_time() - started < MOST_SECONDS
        except (Exception, SystemExit):
            capfd.readouterr()
            failures.append(
                f"case {number}, {command}: {case(number, file)[:1500]!r}\n{traceback.format_exc(limit=-5)}"
            )
    assert not failures, f"{len(failures)} of {CASES}\n" + "\n".join(failures[:5])
