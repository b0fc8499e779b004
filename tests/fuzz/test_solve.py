"""`specopt solve` on files of every kind: harmed ones, arbitrary JSON, arbitrary bytes.

By default cases 0 to 39; `numbered` says how others are chosen.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.cases import problem_case
from fuzz.numbered import check_all, numbered
from fuzz.outcome import check_refusal, check_result
from fuzz.seed_problems import families_of

from specopt.commands.cli import run
from specopt.kinds import KINDS


def test_every_kind_has_families() -> None:
    """Tests that no kind is left out for want of a family."""
    assert all(families_of(kind.name) for kind in KINDS)


def test_cases_repeat() -> None:
    """Tests that the number of a case alone makes its content, so that a report can be replayed."""
    assert [problem_case(number) for number in range(30)] == [
        problem_case(number) for number in range(30)
    ]


@pytest.mark.slow
@numbered(40)
def test_refused_or_judged(
    numbers: range, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that each file is refused with one line, or solved with a plan and a bound that the
    judge accepts.

    Every eighth problem that is accepted is solved for the readable summary, too.
    """
    path = tmp_path / "problem.json"

    def check(number: int) -> None:
        path.write_bytes(problem_case(number))
        capfd.readouterr()
        code = run(["solve", str(path), "--json", "--time-limit", "1"])
        out, err = capfd.readouterr()
        if code == 2:
            check_refusal(code, out, err)
            return
        check_result(path, code, out, err)
        if number % 8 == 0:
            assert run(["solve", str(path), "--time-limit", "1"]) == code
            assert "\n" in capfd.readouterr().out

    check_all(numbers, check, lambda number: problem_case(number)[:2000])
