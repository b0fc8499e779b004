"""`specopt solve` on files of every kind: harmed ones, arbitrary JSON, arbitrary bytes.

By default cases 0 to 39. ``SPECOPT_FUZZ=20000`` in the environment takes 20,000,
``SPECOPT_FUZZ_FROM=4711`` begins there: with ``SPECOPT_FUZZ=1`` it repeats one case of a report.
"""

from __future__ import annotations

import faulthandler
import os
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.cases import problem_case
from fuzz.outcome import check_refusal, check_result
from fuzz.seed_problems import families_of

from specopt.commands.cli import run
from specopt.kinds import KINDS

CASES = int(os.environ.get("SPECOPT_FUZZ", "40"))
FIRST = int(os.environ.get("SPECOPT_FUZZ_FROM", "0"))
CHUNK = 100
CHUNKS = [
    range(start, min(start + CHUNK, FIRST + CASES)) for start in range(FIRST, FIRST + CASES, CHUNK)
]
HANG_SECONDS = 300.0


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """End the process where a hundred cases take so long that one must hang: nothing else ends a
    loop of a kernel.
    """
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def test_every_kind_has_families() -> None:
    """Tests that no kind is left out for want of a family."""
    assert all(families_of(kind.name) for kind in KINDS)


def test_cases_repeat() -> None:
    """Tests that the number of a case alone makes its content, so that a report can be replayed."""
    assert [problem_case(number) for number in range(30)] == [
        problem_case(number) for number in range(30)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers", CHUNKS, ids=lambda numbers: f"{numbers.start}-{numbers.stop - 1}"
)
def test_refused_or_judged(
    numbers: range, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that each file is refused with one line, or solved with a plan and a bound that the
    judge accepts.

    Every eighth problem that is accepted is solved for the readable summary, too.
    """
    failures = []
    path = tmp_path / "problem.json"
    for number in numbers:
        path.write_bytes(problem_case(number))
        try:
            code = run(["solve", str(path), "--json", "--time-limit", "1"])
            out, err = capfd.readouterr()
            if code == 2:
                check_refusal(code, out, err)
                continue
            check_result(path, code, out, err)
            if number % 8 == 0:
                assert run(["solve", str(path), "--time-limit", "1"]) == code
                assert "\n" in capfd.readouterr().out
        except Exception:
            capfd.readouterr()
            failures.append(
                f"case {number}: {path.read_bytes()[:2000]!r}\n{traceback.format_exc(limit=-6)}"
            )
    assert not failures, (
        f"repeat with SPECOPT_FUZZ=1 SPECOPT_FUZZ_FROM=NUMBER\n{chr(10).join(failures)}"
    )
