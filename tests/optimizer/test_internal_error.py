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
from helpers.command_line import CommandLine

import specopt
from specopt import (
    DraftAllocationPlan,
    DraftAllocationProblem,
    Status,
    Termination,
    generate,
    solve,
)
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
    with pytest.raises(InternalError, match="the sum is 6, but the budget is 5") as error:
        solve(problem, Careless(tokens=6, bound=9.0))
    case = saved_case(str(error.value))
    assert case["plan"] == {"draft_tokens": [6, 0, 0]}
    assert DraftAllocationProblem.from_dict(case["problem"]) == problem
    assert (case["method"], case["options"]) == ("careless", {"tokens": 6, "bound": 9.0})
    assert (case["bound"], case["returned"]) == (
        9.0,
        "a plan that violates: draft_tokens: the sum is 6, but the budget is 5",
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
    with pytest.warns(RefutedProof, match="but a plan with the objective") as warned:
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
    known: ClassVar[float | None] = None

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Bound the plan of its parent."""
        if self.known is not None:
            budget.improve_bound(self.known)
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
        with monkeypatch.context() as patch:
            patch.setattr(Endless, "known", 100.0)
            assert solve(problem, Endless(tokens=5)).bound == pytest.approx(100.0)


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
    with pytest.warns(RefutedProof, match="a proof that none exists: nothing fits"):
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
    assert record.error is not None and "but a plan with the objective" in record.error
    saved_case(record.error)


def replace_greedy(monkeypatch: pytest.MonkeyPatch, careless: Careless) -> None:
    """Let the command's `greedy` do what a careless method does."""
    monkeypatch.setattr(Greedy, "run", lambda _, problem, budget: careless.run(problem, budget))


def test_the_command_exits_with_70(
    problem: DraftAllocationProblem, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the command line says one line and exits with 70, and writes no result."""
    specopt.save(problem, "p.json")
    replace_greedy(monkeypatch, Careless(tokens=6))
    said = cli("solve p.json --method greedy -o r.json", 70).err
    assert (
        said.strip()
        .splitlines()[-1]
        .startswith(
            "specopt: internal error: method greedy of draft-allocation returned a plan that"
        )
    )
    assert not Path("r.json").exists()


def test_the_command_says_one_line_of_a_refuted_bound(
    problem: DraftAllocationProblem, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the command writes the plan, exits with 0 and warns in one line, and that -q
    leaves that out.
    """
    specopt.save(problem, "p.json")
    replace_greedy(monkeypatch, Careless(tokens=5, bound=0.0))
    for quiet in ("-q", ""):  # the last one stays set
        said = cli(f"{quiet} solve p.json --method greedy -o r.json").err
        result = specopt.load("r.json", specopt.Result)
        assert (result.status, result.bound) == (Status.FEASIBLE, None)
        saved_case(result.stats["refuted"])
        lines = [line for line in said.splitlines() if line.startswith("warning: ")]
        assert lines == ([] if quiet else [f"warning: {result.stats['refuted']}"])


@pytest.mark.slow
def test_without_assertions_it_is_the_same(tmp_path: Path) -> None:
    """Tests that python -O refuses the plan, too."""
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import test_internal_error as t, specopt\n"
        "from dataclasses import replace\n"
        "p = specopt.generate('draft-allocation/uniform', clients=3, seed=1)\n"
        "try:\n"
        "    specopt.solve(replace(p, budget_tokens=5), t.Careless(tokens=6))\n"
        "except specopt.models.errors.InternalError:\n"
        "    print('refused')\n"
    )
    here = Path(__file__).parent
    command = [sys.executable, "-O", "-c", program, str(here), str(here.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "refused\n"
