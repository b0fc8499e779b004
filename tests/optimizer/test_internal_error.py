"""What the judge refuses never leaves as a result: no violating plan, no bound or proof that the
plan refutes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import specopt
from specopt import (
    DraftAllocationPlan,
    DraftAllocationProblem,
    Status,
    Termination,
    generate,
    solve,
)
from specopt.commands.cli import run
from specopt.models.errors import Infeasible, InternalError, RefutedProof
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
    """Tests that a plan beyond the budget is an internal error that says what, and where the case
    was saved.
    """
    assert solve(problem, Careless(tokens=5)).objective is not None
    with pytest.raises(InternalError, match="sum to 6, the budget is 5") as error:
        solve(problem, Careless(tokens=6, bound=9.0))
    case = saved_case(str(error.value))
    assert case["plan"] == {"draft_tokens": [6, 0, 0]}
    assert DraftAllocationProblem.from_dict(case["problem"]) == problem
    assert (case["method"], case["options"]) == ("careless", {"tokens": 6, "bound": 9.0})
    assert (case["bound"], case["returned"]) == (
        9.0,
        "a plan that violates: draft_tokens: sum to 6, the budget is 5",
    )


def saved_case(text: str) -> dict[str, Any]:
    """Return the case that a message says was saved, and remove it."""
    found = re.search(r"saved in (\S+);", text)
    assert found is not None
    case: dict[str, Any] = json.loads(Path(found[1]).read_text())
    Path(found[1]).unlink()
    return case


def test_a_bound_that_the_plan_refutes_is_left_out(problem: DraftAllocationProblem) -> None:
    """Tests that a plan survives a bound on its wrong side: a warning, a note, a saved case;
    rounding is none.
    """
    plain = solve(problem, Careless(tokens=5))
    assert plain.objective is not None and "refuted" not in plain.stats
    assert (
        solve(problem, Careless(tokens=5, bound=plain.objective * (1.0 - 1e-10))).bound
        == plain.objective
    )
    near = solve(problem, Careless(tokens=5, bound=plain.objective * (1.0 - 1e-12)))
    assert (
        near.bound is not None
        and 0.0 < near.bound / plain.objective - 1.0 < 2e-11
        and near.gap == 0.0
    )
    bound = plain.objective * (1.0 - 1e-6)
    with pytest.warns(RefutedProof, match="but its plan has") as warned:
        result = solve(problem, Careless(tokens=5, bound=bound), gap=0.5)
    assert Path(warned[0].filename) == Path(__file__), "whoever called solve is named"
    assert (result.plan, result.objective) == (plain.plan, plain.objective)
    assert (result.bound, result.gap, result.status) == (None, None, Status.FEASIBLE)
    assert result.termination is Termination.EXHAUSTED
    assert result.stats["refuted"] == str(warned[0].message)
    case = saved_case(result.stats["refuted"])
    assert (case["bound"], case["plan"]) == (bound, {"draft_tokens": [5, 0, 0]})


@dataclass(frozen=True)
class Endless(Careless):
    """Returns a bound that is no option of its own."""

    name: ClassVar[str] = "endless"
    proven: ClassVar[float] = np.inf

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Bound the plan of its parent."""
        return replace(super().run(problem, budget), bound=self.proven)


def test_bounds_of_other_types_and_without_end(
    problem: DraftAllocationProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a refuted bound that JSON does not know keeps the plan, and that an infinite bound
    is none.
    """
    with pytest.warns(RefutedProof, match="the case is saved"):
        monkeypatch.setattr(Endless, "proven", np.float32(0.5))
        result = solve(problem, Endless(tokens=5))
    assert result.plan is not None and result.bound is None
    saved_case(result.stats["refuted"])
    for bound in (np.inf, -np.inf, np.nan):
        monkeypatch.setattr(Endless, "proven", bound)
        result = solve(problem, Endless(tokens=5))
        assert (result.bound, result.gap, result.status) == (None, None, Status.FEASIBLE)


@dataclass(frozen=True)
class Denying(Careless):
    """Offers a plan, and then says that there is none."""

    name: ClassVar[str] = "denying"

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Contradict itself."""
        plan = super().run(problem, budget).plan
        assert plan is not None
        budget.offer(plan)
        raise Infeasible("nothing fits")


def test_a_plan_survives_a_proof_that_there_is_none(problem: DraftAllocationProblem) -> None:
    """Tests that a feasible plan refutes a claim of infeasibility, and that a violating one does
    not.
    """
    with pytest.warns(RefutedProof, match="a proof that there is none: nothing fits"):
        result = solve(problem, Denying(tokens=5))
    assert (result.status, result.termination, result.explanation) == (
        Status.FEASIBLE,
        Termination.EXHAUSTED,
        None,
    )
    assert result.objective == solve(problem, Careless(tokens=5)).objective
    saved_case(result.stats["refuted"])
    refused = solve(problem, Denying(tokens=6))
    assert (refused.status, refused.plan, refused.explanation) == (
        Status.INFEASIBLE,
        None,
        "nothing fits",
    )


def test_a_comparison_keeps_the_plan_and_says_what_is_refuted(
    problem: DraftAllocationProblem,
) -> None:
    """Tests that a worker's record has the objective without the bound, and the note in place of a
    failure.
    """
    objective = solve(problem, Greedy()).objective

    @dataclass(frozen=True)
    class Boundless(Greedy):
        def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
            return replace(super(type(self), self).run(problem, budget), bound=0.0)

    (record,) = specopt.compare([Boundless()], [problem], time_limit=None, jobs=1)
    assert (record.status, record.objective, record.bound, record.gap) == (
        "feasible",
        objective,
        None,
        None,
    )
    assert record.error is not None and "but its plan has" in record.error
    saved_case(record.error)


def test_a_gap_is_reached_or_not(problem: DraftAllocationProblem) -> None:
    """Tests that a plan counts as optimal within the gap that was asked for, and not a little
    beyond it.
    """
    objective = solve(problem, Careless(tokens=5)).objective
    assert objective is not None
    for distance, status in (
        (0.099, Status.OPTIMAL),
        (0.101, Status.FEASIBLE),
        (0.14, Status.FEASIBLE),
    ):
        result = solve(problem, Careless(tokens=5, bound=objective * (1.0 + distance)), gap=0.1)
        assert result.status is status
        assert result.gap == pytest.approx(distance)


def test_the_command_exits_with_70(
    problem: DraftAllocationProblem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that the command line says one line and exits with 70, and writes no result."""
    specopt.save(problem, tmp_path / "p.json")
    monkeypatch.setattr(Greedy, "run", Careless(tokens=6).run.__func__)  # type: ignore[attr-defined]
    monkeypatch.setattr(Greedy, "tokens", 6, raising=False)
    monkeypatch.setattr(Greedy, "bound", None, raising=False)
    code = run(
        ["solve", str(tmp_path / "p.json"), "--method", "greedy", "-o", str(tmp_path / "r.json")]
    )
    lines = capsys.readouterr().err.strip().splitlines()
    assert code == 70
    assert lines[-1].startswith(
        "specopt: internal error: method greedy of draft-allocation returned a plan that"
    )
    assert not (tmp_path / "r.json").exists()


def test_the_command_says_one_line_of_a_refuted_bound(
    problem: DraftAllocationProblem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that the command writes the plan, exits with 0 and warns in one line, and that -q
    leaves that out.
    """
    specopt.save(problem, tmp_path / "p.json")
    monkeypatch.setattr(Greedy, "run", Careless(tokens=5, bound=0.0).run.__func__)  # type: ignore[attr-defined]
    monkeypatch.setattr(Greedy, "tokens", 5, raising=False)
    monkeypatch.setattr(Greedy, "bound", 0.0, raising=False)
    arguments = [
        "solve",
        str(tmp_path / "p.json"),
        "--method",
        "greedy",
        "-o",
        str(tmp_path / "r.json"),
    ]
    for quiet in (["-q"], []):  # the last one stays set
        assert run([*quiet, *arguments]) == 0
        result = specopt.load(tmp_path / "r.json", specopt.Result)
        assert (result.status, result.bound) == (Status.FEASIBLE, None)
        saved_case(result.stats["refuted"])
        lines = [
            line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")
        ]
        assert lines == ([] if quiet else [f"warning: {result.stats['refuted']}"])


@pytest.mark.slow
def test_without_assertions_it_is_the_same(tmp_path: Path) -> None:
    """Tests that python -O refuses the plan, too."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\nimport test_internal_error as t,"
        " specopt\nfrom dataclasses import replace\np ="
        " replace(specopt.generate('draft-allocation/uniform', clients=3, seed=1),"
        " budget_tokens=5)\ntry:\n    specopt.solve(p, t.Careless(tokens=6))\nexcept"
        " specopt.models.errors.InternalError:\n    print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", program, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        env=None,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == "refused\n"
