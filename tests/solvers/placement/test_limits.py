"""Limits of the methods of placement: none of them hides in a certificate, and the time is kept
everywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
import pytest
from helpers.program_endings import end_programs_as
from helpers.untyped import generate, solve
from oracles import placement as oracle
from pyomo.contrib.solver.common.results import TerminationCondition
from small_instances.placement import INSTANCES, one_of_each, passes

from specopt import PlacementProblem, Status, methods
from specopt.models.errors import OutOfTime
from specopt.models.placement.plan import PlacementPlan
from specopt.models.result import Termination
from specopt.solvers import highs
from specopt.solvers.placement import refined
from specopt.solvers.placement.choice import Choice, choose
from specopt.solvers.placement.kernels import listing
from specopt.solvers.placement.kernels import units as kernels
from specopt.solvers.placement.milp import MilpPlacement
from specopt.solvers.placement.patterns import all_patterns, undominated, valued
from specopt.solvers.placement.prepare import draft_sizes, prepare
from specopt.solvers.placement.program import Program, Solution
from specopt.solvers.placement.relaxation import Relaxation

EDGES = {
    path.stem: PlacementProblem.from_dict(json.loads(path.read_text()))
    for path in sorted((Path(__file__).parents[2] / "data" / "edges").glob("placement-*.json"))
}
OPTIMA = {
    "placement-converged-with-gap": 55.51141409619043,
    "placement-no-plan-at-limit-0": 700.0,
    "placement-bound-of-a-branch": 203.3878683177852,
}
EXACT = ("refined", "milp", "brute-force")


def cases() -> Iterator[tuple[str, str]]:
    """Give every case with every method that takes it; the portfolio ends as its only member
    does.
    """
    for case, problem in EDGES.items():
        for method in methods(problem):
            if method.name != "auto":
                yield case, method.name


def pooled(objective: str, clients: int) -> PlacementProblem:
    """Clients of one class with a pool of one unit, whose drafter takes no memory for its cache."""
    return one_of_each(
        objective,
        4,
        verifier={"units": 2, "passes": passes(0.02, 2e-5, 2e-6), "price_per_second": 1.0},
        drafter={
            "weights_bytes": 1.0,
            "kv_bytes_per_token": 0.0,
            "server": {"p": passes(1e-4, token=1e-7)},
        },
        pool={
            "units": 1,
            "memory_bytes": 9.0,
            "round_trip_seconds": {"v": 0.001},
            "price_per_second": 0.1,
        },
        classes=[
            {
                "clients": clients,
                "context_tokens": 10,
                "acceptance": {"d": 0.9},
                "min_tokens_per_second": 25.0,
            }
        ],
    )


@pytest.mark.parametrize(("case", "method"), list(cases()))
def test_converged_is_proven(case: str, method: str) -> None:
    """Tests that exact methods prove the optimum of every case, and that the others say that they
    are exhausted.
    """
    result = solve(EDGES[case], method)
    if method in EXACT:
        assert result.status is Status.OPTIMAL and result.objective == pytest.approx(
            OPTIMA[case], rel=1e-6
        )
    else:
        assert result.termination is Termination.EXHAUSTED and result.bound is None


def no_kernel_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no kernel be compiled or in the cache, and fail where one is called."""
    for name in ("value", "values", "search", "program"):
        monkeypatch.setattr(kernels, name, SimpleNamespace(is_ready=False))
    monkeypatch.setattr(listing, "near", SimpleNamespace(is_ready=False))


@pytest.mark.parametrize(("case", "method"), list(cases()))
def test_a_plan_comes_before_the_first_kernel(
    case: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that with no time every method has a plan where it has one with time, and calls no
    compiled code.
    """
    has = method in EXACT or solve(EDGES[case], method).plan is not None
    no_kernel_is_ready(monkeypatch)
    result = solve(EDGES[case], method, time_limit=0.0)
    assert result.termination is Termination.TIME_LIMIT and (result.plan is not None) == has


def test_the_bound_of_a_branch_is_not_that_of_all_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that what bounds plans with so many units of a verifier is forgotten before the next,
    narrower boxes.
    """
    case = "placement-bound-of-a-branch"
    monkeypatch.setattr(refined, "EXACT_CLIENTS", -1)
    monkeypatch.setattr(refined, "NARROW", refined.NARROW[:4])
    result = solve(EDGES[case], "refined")
    assert result.bound <= OPTIMA[case]


def test_every_call_of_highs_has_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that linear and integer programs of a limited solve are limited, whether patterns are
    listed or priced.
    """
    given: list[float] = []
    solved = Program.solve

    def watched(
        self: Program, seconds: float = math.inf, *arguments: Any, **options: Any
    ) -> Solution:
        given.append(seconds)
        return solved(self, seconds, *arguments, **options)

    monkeypatch.setattr(Program, "solve", watched)
    for few in (refined.FEW_PATTERNS, -1):
        monkeypatch.setattr(refined, "FEW_PATTERNS", few)
        assert solve(INSTANCES["goodput"], "refined", time_limit=500.0).status is Status.OPTIMAL
    assert len(given) > 4 and max(given) <= 500.0


def test_presolve_does_not_outlast_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that HiGHS presolves an integer program only where no time is limited: it does not look
    at the clock.
    """
    set_: list[tuple[str, Any]] = []

    class Noted(highs.Highs):
        def setOptionValue(self, name: str, value: Any) -> Any:
            """Note the option."""
            set_.append((name, value))
            return super().setOptionValue(name, value)

    monkeypatch.setattr(highs, "Highs", Noted)
    for whole, seconds, presolve, off in (
        (True, 500.0, True, True),
        (True, math.inf, True, False),
        (False, 500.0, True, False),
        (False, 500.0, False, True),
    ):
        set_.clear()
        one = Program()
        one.column(1.0, {one.rows([0.0], [1.5])[0]: 1.0}, whole=whole)
        assert one.solve(seconds, presolve=presolve).value == (1.0 if whole else 1.5)
        assert (("presolve", "off") in set_) == off


def test_the_bound_outlives_an_integer_program_that_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that the bound of the linear program is returned where HiGHS ends the integer one
    without anything.
    """
    solved = Program.solve

    def stopped(self: Program, *arguments: Any, **named: Any) -> Solution:
        if any(self.whole):
            return Solution(None, np.zeros(0), np.zeros(0), -math.inf, math.inf, 0.0)
        return solved(self, *arguments, **named)

    monkeypatch.setattr(Program, "solve", stopped)
    result = solve(INSTANCES["goodput"], "refined")
    best: Any = oracle.optimum(INSTANCES["goodput"].to_dict())
    assert result.objective <= best[0] <= result.bound < 1.5 * best[0]


def test_a_linear_program_that_is_stopped_has_no_bound() -> None:
    """Tests that the value of a point that is not optimal is no bound."""
    one = Program()
    (row,) = one.rows([0.0], [1.0])
    one.column(1.0, {row: 1.0})
    assert one.solve().bound == 1.0

    class Stopped(highs.Highs):
        def getModelStatus(self) -> Any:
            """Return that the time is up."""
            return highspy.HighsModelStatus.kTimeLimit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(highs, "Highs", Stopped)
        assert one.solve().bound == math.inf


def test_listing_patterns_asks_for_the_time() -> None:
    """Tests that listing, valuing and choosing patterns end where the time is up."""
    prepared = prepare(INSTANCES["goodput"], exact=True)  # type: ignore[arg-type]
    every = list(all_patterns(prepared))
    prepared.budget.time_limit = 0.0
    with pytest.raises(OutOfTime):
        list(all_patterns(prepared))
    with pytest.raises(OutOfTime):
        valued(prepared, every)


def test_what_highs_does_not_decide_is_not_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that an integer program that ends without a plan, but not as infeasible, proves
    nothing.
    """
    end_programs_as(TerminationCondition.unknown, monkeypatch)
    result = solve(INSTANCES["goodput"], MilpPlacement())
    assert (result.status, result.plan) == (Status.NONE, None)


def test_a_proof_needs_no_count_of_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the proof does not count clients where the time is up before their number is
    known.
    """

    def late(*arguments: Any, penalty: float = 0.0) -> Choice:
        return (None, math.inf) if penalty else choose(*arguments)

    monkeypatch.setattr(refined, "choose", late)
    result = solve(INSTANCES["infeasible: units"], "refined")
    assert result.status is Status.INFEASIBLE and "units cannot serve" in str(result.explanation)


# ------------------------------------------------------------------ what is limited in number


def test_draft_units_hold_all_clients_where_memory_does() -> None:
    """Tests that a drafter without a cache drafts for 3,000 clients on one unit."""
    problem = pooled("cost", 3000)
    assert draft_sizes(problem, problem.drafters[0]) == {0: 3000}
    result = solve(problem, "refined")
    assert result.status is Status.OPTIMAL and result.objective == pytest.approx(1.1)


def test_draft_units_hold_what_verifiers_hold_for_capacity() -> None:
    """Tests that the clients of a draft unit are those that memory of all verifiers holds where all
    counts are free.
    """
    problem = pooled("capacity", 1)
    assert draft_sizes(problem, problem.drafters[0]) == {0: 2 * (10**9 // 12)}


LIMITS: dict[str, dict[str, Any]] = {
    "refined": {
        "FEW_PATTERNS": -1,
        "MANY_PATTERNS": -1,
        "EXACT_CLIENTS": -1,
        "EXACT_OPTIONS": -1,
        "LEAVES": 1,
        "NARROW": (1.1,),
        "NEAR": (1 / 64,),
        "BOXES": (1,),
        "SECONDS_PER_PLAN": 1e-9,
        "ROUNDED": 0.0,
        "WHOLE_UNITS": 0.0,
    },
    "relaxation": {
        "FEW_UNITS": 0,
        "SPARE": 2,
        "MAX_BOXES": 1,
        "MAX_NEAR": 1,
        "MAX_SHARES": 0,
        "PER_SIDE": 1,
    },
    "listing": {"MAX_KEPT": 1, "MAX_ENTRIES": 1, "CHUNK": 1},
    "rounding": {"OPTIONS": 0, "MAX_MOVES": 0},
    "prepare": {"EXACT_SIZES": 0, "RANGE": 5.0},
    "first_plans": {"STEPS": 0, "CLIENTS": 1},
    "boxes": {"RATIO": 9.0},
}
"""What limits the search, with values that bind in the smallest problems."""


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, of in LIMITS.items() for name in of]
)
@pytest.mark.parametrize("instance", ["pool", "energy"])
def test_no_limit_hides_in_a_certificate(
    module: str, name: str, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that bounds hold and that what is called optimal is, however tight a limit of the
    search is.
    """
    monkeypatch.setattr(refined, "FEW_PATTERNS", -1)
    if (module, name) != ("refined", "FEW_PATTERNS"):
        monkeypatch.setattr(refined, "MANY_PATTERNS", -1)
    if module == "prepare":
        monkeypatch.setattr(refined, "EXACT_CLIENTS", -1)
    monkeypatch.setattr(f"specopt.solvers.placement.{module}.{name}", LIMITS[module][name])
    problem = INSTANCES[instance]
    best: Any = oracle.optimum(problem.to_dict())
    result = solve(problem, "refined")
    sense, slack = 1.0 if problem.sense == "maximize" else -1.0, 1e-9 * abs(best[0])
    assert sense * result.objective - slack <= sense * best[0] <= sense * result.bound + slack
    if result.termination is Termination.CONVERGED:
        assert result.status is Status.OPTIMAL and result.objective == pytest.approx(
            best[0], rel=1e-9
        )
    else:
        assert result.status is Status.FEASIBLE and result.termination is Termination.EXHAUSTED


def test_passes_of_many_pieces_are_listed() -> None:
    """Tests that a verifier whose passes have 30 pieces, which make more than 64 rows, has all its
    patterns listed.
    """
    data = INSTANCES["one client"].to_dict()
    (verifier,) = data["verifiers"]
    verifier["passes"] = [
        one | {"seconds_per_token": (1 + k / 900) * one["seconds_per_token"]}
        for one in verifier["passes"]
        for k in range(30)
    ]
    prepared = prepare(PlacementProblem.from_dict(data), exact=True)
    relaxation = Relaxation(prepared, narrow=np.inf)
    duals = np.zeros(1), np.zeros(4), np.zeros(0)
    sizes = relaxation.sizes(relaxation.covers[0], 0.0, duals[1])
    assert kernels.rows_of(prepared.sides[0].unit, sizes) > 64
    relaxation.split_near(duals, 1e6, lambda: None)
    listed = relaxation.near(duals, 1e6)
    assert listed is not None
    every = undominated(prepared, valued(prepared, list(all_patterns(prepared))))
    assert {one.value for one in undominated(prepared, listed)} == {one.value for one in every}


def test_large_problems_have_a_plan_without_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that with no time only plans without drafts are tried where the options alone take
    time, and few where judging does.
    """
    no_kernel_is_ready(monkeypatch)
    problem = generate("placement/many-classes")
    assert solve(problem, "refined", time_limit=0.0).plan is not None
    monkeypatch.setattr("specopt.solvers.placement.method.PLAIN_PATTERNS", 1)
    assert solve(problem, "all-beside", time_limit=0.0).plan is None
    monkeypatch.setattr("specopt.solvers.placement.method.PLAIN_PATTERNS", 3000)
    monkeypatch.setattr("specopt.solvers.placement.method.PLAIN_OPTIONS", 9)
    assert solve(problem, "all-beside", time_limit=0.0).plan is None
    assert {
        one["place"]
        for of in solve(problem, "refined", time_limit=0.0).terms["classes"].values()
        for one in of
    } == {"none"}


def test_many_classes_share_the_units_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the first plan of a problem with many options needs none of these: every unit
    serves as many clients, without drafts.
    """
    made: list[PlacementProblem] = []

    def prepared(problem: PlacementProblem, *more: Any, **named: Any) -> Any:
        made.append(problem)
        return prepare(problem, *more, **named)

    monkeypatch.setattr("specopt.solvers.placement.method.PLAIN_OPTIONS", 9)
    monkeypatch.setattr(refined, "prepare", prepared)
    problem = generate("placement/many-classes", classes=40, number_of_clients=100, units=4)
    result = solve(problem, "refined", callback=lambda progress: True)
    assert [one.drafters for one in made[:1]] == [()]
    assert isinstance(result.plan, PlacementPlan) and not problem.violations(result.plan)
    served = [sum(one.per_unit for one in group.clients) for group in result.plan.groups]
    assert sorted(served) == [25] * 4


def test_work_is_limited_where_time_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the default ends with a plan and a bound where its work is spent."""
    problem = generate("placement/capacity", number_of_clients=3)
    spent: list[float] = []
    for limit in (0.05, 0.2):
        monkeypatch.setattr("specopt.solvers.auto.WORK_SECONDS", limit)
        result = solve(problem)
        assert result.termination is Termination.WORK_LIMIT and result.plan is not None
        spent.append(result.gap or math.inf)
    assert spent[1] <= spent[0]
