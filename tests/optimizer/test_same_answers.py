"""Commands print the same numbers as ever: those of `benchmarks/answers.py`, on the examples.

`tests/data/answers.json` holds a short print of what each prints. What differs in words is free. A change that is meant
is recorded with ``.venv/bin/python -P tests/optimizer/test_same_answers.py``; ``benchmarks/answers.py`` shows it whole.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests" / "data" / "answers.json"
CLOSE = 1e-8
SPEC = importlib.util.spec_from_file_location("benchmarks_answers", ROOT / "benchmarks" / "answers.py")
assert SPEC is not None and SPEC.loader is not None
answers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(answers)

COMMANDS = [line for line in answers.commands() if not (line.startswith("plan") and line.endswith("--json"))]
"""Where several plans are best, which of them a whole plan holds depends on how the processor rounds."""


def numbers(data: Any) -> Iterator[float]:
    """Yield the numbers of what was printed, those in texts too."""
    if isinstance(data, str):
        yield from map(float, answers.NUMBER.findall(data))
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from numbers(value)
    elif data is not None:
        yield data


def print_of(case: str) -> list[Any]:
    """Return how many numbers a case prints, a sum that each of them changes, and how many bars and rules."""
    found, _ = answers._printed(case)
    values = [math.asinh(1e9 * one) for one in numbers(found)]
    marks = sum(map(len, re.findall(r"[^\w\s.,:;()'\"/{}\[\]-]+", json.dumps(found, ensure_ascii=False))))
    return [len(values), sum((1.0 + math.sin(i)) * one for i, one in enumerate(values)), marks]


@pytest.fixture(scope="module", autouse=True)
def examples() -> Iterator[None]:
    """Work in a folder with the examples."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(prepared(Path(folder)))
        patch.setenv("COLUMNS", "100")
        patch.setenv("NO_COLOR", "1")
        yield


def prepared(folder: Path) -> Path:
    """Return a folder with the examples."""
    for source in answers.EXAMPLES:
        shutil.copytree(source, folder, dirs_exist_ok=True)
    (folder / "rates.json").write_text(json.dumps(answers.RATES))
    return folder


def test_every_case_is_recorded() -> None:
    """Tests that none is left out, and none is kept that is gone."""
    assert list(json.loads(RECORD.read_text())) == COMMANDS


@pytest.mark.parametrize("case", COMMANDS)
def test_numbers_are_those_of_before(case: str) -> None:
    """Tests that a case prints as many numbers as were recorded, and the same."""
    count, total, marks = json.loads(RECORD.read_text())[case]
    found = print_of(case)
    assert [found[0], found[2]] == [count, marks]
    assert found[1] == pytest.approx(total, rel=CLOSE)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(prepared(Path(folder)))
        os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
        with contextlib.redirect_stdout(io.StringIO()):
            lines = [f"{json.dumps(case)}: {json.dumps(print_of(case))}" for case in COMMANDS]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
