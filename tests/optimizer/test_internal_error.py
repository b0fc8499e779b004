"""What the judge refuses never leaves as a result: not a violating plan, and not a bound that the plan refutes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import specopt
from specopt import DraftAllocationPlan, DraftAllocationProblem, Status, generate, solve
from specopt.cli import run
from specopt.models.errors import InternalError
from specopt.solvers.budget import Budget
from specopt.solvers.draft_allocation.greedy import Greedy
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Careless(Greedy):
    """Returns an allocation of its own choice, and a bound."""

    name: ClassVar[str] = "careless"
    tokens: int = 0
    bound: float | None = None

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Give all tokens to the first client."""
        drafts = np.zeros(problem.clients, dtype=np.int64)
        drafts[0] = self.tokens
        return Outcome(plan=DraftAllocationPlan(draft_tokens=drafts), bound=self.bound)


@pytest.fixture
def problem() -> DraftAllocationProblem:
    """A budget of five tokens."""
    found = generate("draft-allocation/uniform", clients=3, seed=1)
    assert isinstance(found, DraftAllocationProblem)
    return replace(found, budget_tokens=5)


def test_a_violating_plan_is_no_result(problem: DraftAllocationProblem) -> None:
    """Tests that a plan beyond the budget is an internal error that says what, and where the case was saved."""
    assert solve(problem, Careless(tokens=5)).objective is not None
    with pytest.raises(InternalError, match="sum to 6, the budget is 5") as error:
        solve(problem, Careless(tokens=6, bound=9.0))
    found = re.search(r"saved in (\S+);", str(error.value))
    assert found is not None and found[1].endswith(".json")
    case = json.loads(Path(found[1]).read_text())
    Path(found[1]).unlink()
    assert case["plan"] == {"draft_tokens": [6, 0, 0]}
    assert DraftAllocationProblem.from_dict(case["problem"]) == problem
    assert (case["method"], case["options"]) == ("careless", {"tokens": 6, "bound": 9.0})
    assert (case["bound"], case["returned"]) == (9.0, "a plan that violates: draft_tokens: sum to 6, the budget is 5")


def test_a_bound_that_the_plan_refutes_is_no_result(problem: DraftAllocationProblem) -> None:
    """Tests that a bound on the wrong side of its own plan is an internal error, and rounding is not."""
    objective = solve(problem, Careless(tokens=5)).objective
    assert objective is not None
    assert solve(problem, Careless(tokens=5, bound=objective * (1.0 - 1e-12))).bound == objective
    with pytest.raises(InternalError, match="the bound"):
        solve(problem, Careless(tokens=5, bound=objective * (1.0 - 1e-6)))


def test_a_gap_is_reached_or_not(problem: DraftAllocationProblem) -> None:
    """Tests that a plan counts as optimal within the gap that was asked for, and not a little beyond it."""
    objective = solve(problem, Careless(tokens=5)).objective
    assert objective is not None
    for distance, status in ((0.099, Status.OPTIMAL), (0.101, Status.FEASIBLE), (0.14, Status.FEASIBLE)):
        result = solve(problem, Careless(tokens=5, bound=objective * (1.0 + distance)), gap=0.1)
        assert result.status is status
        assert result.gap == pytest.approx(distance)


def test_the_command_exits_with_70(
    problem: DraftAllocationProblem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the command line says one line and exits with 70, and writes no result."""
    specopt.save(problem, tmp_path / "p.json")
    monkeypatch.setattr(Greedy, "run", Careless(tokens=6).run.__func__)  # type: ignore[attr-defined]
    monkeypatch.setattr(Greedy, "tokens", 6, raising=False)
    monkeypatch.setattr(Greedy, "bound", None, raising=False)
    code = run(["solve", str(tmp_path / "p.json"), "--method", "greedy", "-o", str(tmp_path / "r.json")])
    lines = capsys.readouterr().err.strip().splitlines()
    assert code == 70
    assert lines[-1].startswith("specopt: internal error: method greedy of draft-allocation returned a plan that")
    assert not (tmp_path / "r.json").exists()


@pytest.mark.slow
def test_without_assertions_it_is_the_same(tmp_path: Path) -> None:
    """Tests that python -O refuses the plan, too."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_internal_error as t, specopt\n"
        "from dataclasses import replace\n"
        "p = replace(specopt.generate('draft-allocation/uniform', clients=3, seed=1), budget_tokens=5)\n"
        "try:\n    specopt.solve(p, t.Careless(tokens=6))\n"
        "except specopt.models.errors.InternalError:\n    print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", program, str(Path(__file__).parent)], capture_output=True, text=True,
        env=None, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "refused\n"
