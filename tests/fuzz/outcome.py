"""What a command may do with any file: refuse it with one line, or give an answer that the judge
agrees with.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from specopt import Problem, load, verify
from specopt.api.solve import methods
from specopt.models.files import result_from_dict
from specopt.models.result import Result, Status

MAX_CHARACTERS = 420
COMPILING = re.compile(r"preparing .* kernels, once on this machine \.\.\.")
PROGRESS = re.compile(r" *[0-9.]+ s  .*")


def check_refusal(code: int, out: str, err: str) -> None:
    """Check a refusal: exit code 2, nothing on stdout, one line on stderr."""
    assert code in (2, 74), f"exit code {code}"  # 74: the disk is full
    assert out == "", f"stdout: {out[:200]!r}"
    assert len(err.splitlines()) == 1 and err.endswith("\n") and err.startswith("specopt: "), (
        f"stderr: {err!r}"
    )
    assert len(err) <= MAX_CHARACTERS, f"stderr: {len(err)} characters"
    check_printed(err)


def check_printed(text: str) -> None:
    """Check that all that was printed can be shown: no control characters, no overrides, no halves
    of surrogates.
    """
    strange = {char for char in text if not char.isprintable() and char != "\n"}
    assert not strange, f"printed: {strange}"


def check_result(path: Path, code: int, out: str, err: str) -> None:
    """Check a judged result: JSON alone on stdout, a feasible plan of the objective it claims, a
    bound that holds.
    """
    known = (PROGRESS, COMPILING)
    strange = [line for line in err.splitlines() if not any(one.fullmatch(line) for one in known)]
    assert not strange, f"stderr: {strange}"
    problem = load(path)
    assert isinstance(problem, Problem)
    data: dict[str, Any] = json.loads(out, parse_constant=_refuse)
    result = result_from_dict(data)
    assert result.problem_sha256 == problem.sha256
    assert (code == 0) == (result.plan is not None), f"exit code {code}"
    if result.plan is None:
        assert result.status in (Status.INFEASIBLE, Status.NONE)
        assert result.explanation
        return
    assert result.status in (Status.OPTIMAL, Status.FEASIBLE)
    report = verify(problem, result)
    assert report.feasible, report.violations
    assert report.matches, f"claimed {result.objective}, judged {report.objective}"
    _check_bound(problem, result)


def _check_bound(problem: Problem, result: Result) -> None:
    assert result.objective is not None
    if result.bound is None:
        assert result.status is not Status.OPTIMAL
        return
    tolerance = next(
        m.tolerance for m in methods() if (m.solves.kind, m.name) == (result.kind, result.method)
    )
    slack = tolerance * max(1.0, abs(result.objective))
    sign = 1 if problem.sense == "minimize" else -1
    assert sign * result.bound <= sign * result.objective + slack, (
        f"bound {result.bound} of {result.objective}"
    )


def _refuse(constant: str) -> float:
    raise AssertionError(f"stdout holds {constant}")
