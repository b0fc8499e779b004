"""What docs/stability.md promises to those who keep files of format specopt/1."""

from __future__ import annotations

from pathlib import Path

import pytest

from specopt import Problem, Result, load, verify
from specopt.kinds import KINDS

KEPT = Path(__file__).parent / "data" / "format-1"


@pytest.mark.parametrize("kind", [kind.problem.kind for kind in KINDS])
def test_an_old_file_keeps_its_meaning(kind: str) -> None:
    """Tests that a problem and a result as release 0.1 writes them are read, and judged as they
    were.
    """
    problem, result = load(KEPT / f"{kind}.problem.json"), load(KEPT / f"{kind}.result.json")
    assert isinstance(problem, Problem) and isinstance(result, Result)
    assert problem.kind == kind
    report = verify(problem, result)
    assert report.feasible and report.matches
    assert report.objective == pytest.approx(result.objective, rel=1e-9)
