"""`specopt evaluate` on results that were harmed: refused, or judged from the problem's data
alone.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from fuzz.cases import harmed
from fuzz.numbered import check_all
from fuzz.outcome import check_refusal
from fuzz.seed_problems import seed_problem

from specopt import solve
from specopt.commands.cli import run
from specopt.kinds import KINDS
from specopt.models.files import from_dict
from specopt.models.problem import Problem
from specopt.models.result import Result

CASES = 24


def claimed(data: dict[str, object]) -> Result:
    """Return a result that there is to harm: of a problem file's default method, in a moment."""
    problem = from_dict(data)
    assert isinstance(problem, Problem)
    return solve(problem, time_limit=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_harmed_results(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Tests that each harmed result is refused with one line, or judged: exit 0 if feasible, 1 if
    not.
    """
    file, target = tmp_path / "problem.json", tmp_path / "result.json"

    def check(number: int) -> None:
        rng = random.Random(f"{kind} {number}")
        data = seed_problem(kind, rng)
        file.write_text(json.dumps(data))
        result = claimed(data).to_dict()
        fields = {"properties": {key: {"type": "object"} for key in result}}
        keep = {
            key: result[key] for key in ("format", "kind", "plan", "objective", "problem_sha256")
        }
        target.write_text(harmed(rng, keep if number % 4 else result, fields))
        capfd.readouterr()
        code = run(["evaluate", str(file), str(target), "--json"])
        out, err = capfd.readouterr()
        if code == 2:
            check_refusal(code, out, err)
            return
        assert err == ""
        judged = json.loads(out)
        assert code == (0 if judged["feasible"] else 1)
        assert judged["feasible"] == (judged["violations"] == [])

    check_all(range(CASES), check, lambda _: target.read_text()[:2000])
