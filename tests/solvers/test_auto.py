"""The portfolios: their order, what they hand on, their limits of work, and who is named."""

from __future__ import annotations

import math
from typing import Any

import pytest
from helpers.instances import INSTANCES
from helpers.untyped import generate, solve

import specopt
from specopt import InvalidInput, Termination
from specopt.api.arguments import with_field
from specopt.api.library import best_known, load_saved
from specopt.kinds import KINDS
from specopt.models.errors import OutOfTime, OutOfWork
from specopt.solvers import auto
from specopt.solvers.auto import Auto
from specopt.solvers.budget import Budget
from specopt.solvers.kernels.compiling import meter
from specopt.solvers.verification_batch import threshold


def test_what_would_run_is_listed() -> None:
    """Tests that members depend on the problem, that those that cannot take it are left out, and
    the fallback.
    """
    known = generate("serving-latency/known-lengths", tasks=7, max_output=12, seed=1)
    one = specopt.methods(known)[0]
    assert issubclass(one, Auto)
    assert [member.name for member in one().members(known)] == ["length-aware", "brute-force"]
    few = generate("serving-latency/known-lengths", tasks=5, max_output=12, seed=1)
    assert [member.name for member in one().members(few)] == ["brute-force", "length-aware"]
    predicted = type(few).from_dict(
        few.to_dict()
        | {"output_lengths": "predicted", "output_samples": [few.to_dict()["output_tokens"]]}
    )
    assert [member.name for member in one().members(predicted)] == ["stand-in"]


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("serving-latency/equal-inputs/K200", 0.2),
        ("prompt-chunking/random/N1000-none", 0.01),
        ("verification-batch/correlated/n60-subset-sum", 0.03),
        ("fair-goodput/per-second/N30-C100", 1e-4),
    ],
)
def test_work_is_limited_where_time_is_not(
    name: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a limit of work ends a search, with the same plan and bound each time."""
    monkeypatch.setattr(auto, "WORK_SECONDS", seconds)
    one, two = (solve(load_saved(name)) for _ in range(2))
    assert one.termination is Termination.WORK_LIMIT and one.gap > 0.0
    assert (one.objective, one.bound) == (two.objective, two.bound)
    assert one.plan.to_dict() == two.plan.to_dict()
    assert "to continue" in str(one)


def test_an_infinite_limit_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that work is not limited where the time limit is infinite."""
    monkeypatch.setattr(auto, "WORK_SECONDS", 0.01)
    assert solve(load_saved("prompt-chunking/random/N1000-none"), time_limit=math.inf).gap == 0.0


def test_spent_work_raises() -> None:
    """Tests that a budget without work left raises at its next check, and only then."""
    budget = Budget(generate("draft-allocation/uniform", seed=1))
    budget.work_left = 1.0
    budget.spend(0.75)
    budget.check()
    budget.spend(0.25)
    with pytest.raises(OutOfWork):
        budget.check()


def test_a_stopped_program_keeps_its_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that what HiGHS has when it is stopped counts: its batch, and its bound."""
    name = "verification-batch/correlated/n60-subset-sum"
    problem, best = load_saved(name), best_known(name).objective
    before = solve(problem, "sweep")
    monkeypatch.setattr(threshold, "MEETING", 0)  # HiGHS solves small programs, too
    monkeypatch.setattr(auto, "WORK_SECONDS", 100 * threshold.SECONDS_PER_NODE)
    stopped = solve(problem)
    assert stopped.termination is Termination.WORK_LIMIT
    assert stopped.stats["bound_by"] == "threshold" and stopped.gap < 0.1 * before.gap
    assert best is not None and stopped.objective <= best * (1 + 1e-9)
    assert best <= stopped.bound * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_default_takes_a_plan(kind: specopt.kinds.kind.Kind) -> None:
    """Tests that the default of every kind starts from a plan, and never ends with a worse one."""
    small = {"continuous-serving": {"tasks": 5, "max_output": 20}}.get(kind.name, {})
    problem = next(iter(kind.families)).generate(seed=1, **small)
    plan = solve(problem, gap=0.05).plan
    again = solve(problem, warm_start=plan, time_limit=0)
    assert again.objective == problem.evaluate(plan).objective
    assert again.stats["plan_by"] == "warm start"


def test_a_member_without_memory_is_left_out() -> None:
    """Tests that memory that one member lacks leaves the others to it."""
    problem = generate("prompt-chunking/random", prompt_tokens=3000, seed=1)
    assert math.isfinite(solve(problem, memory_limit=1e6).objective)


PLAIN = (
    "draft-allocation/paper-5/N8-C20-equal",
    "prompt-chunking/paper-4/N100000",
)


@pytest.mark.parametrize("name", PLAIN)
def test_time_spent_on_compiling_leaves_a_plain_plan(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that where kernels are not ready in time, a plan without them is at most 10 % worse
    than the best known.
    """

    def late(self: Budget, module: str) -> object:
        meter.seconds += 5.0
        raise OutOfTime

    problem, best = load_saved(name), best_known(name).objective
    first = solve(problem, time_limit=0)
    monkeypatch.setattr(Budget, "load", late)
    found = solve(problem, time_limit=10)
    assert found.termination is Termination.TIME_LIMIT and found.stats["plan_by"] == "plain"
    assert best is not None
    assert abs(found.objective - best) <= 0.1 * abs(best) < abs(first.objective - best)
    assert "went into preparing kernels" in str(found)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_plain_plans_are_plans(kind: specopt.kinds.kind.Kind) -> None:
    """Tests that plans without compiled code violate nothing."""
    for problem in INSTANCES[kind.name].values():
        default: Any = specopt.methods(problem)[0]()
        for plan in default.plain_plans(problem):
            assert problem.violations(plan) == [], problem.name


@pytest.mark.parametrize(
    ("family", "field", "value", "more"),
    [
        ("serving-latency/paper-1", "bandwidth_hz", 1e6, {"tasks": 6, "max_output": 20}),
        ("serving-latency/paper-1", None, None, {"tasks": 4, "max_output": 20}),
        ("verification-batch/mixed", "memory_bytes", 2e8, {"requests": 14}),
        ("verification-batch/mixed", None, None, {"requests": 11}),
        ("draft-allocation/uniform", "budget_tokens", 3, {"clients": 5}),
        ("draft-allocation/uniform", None, None, {"clients": 7}),
        ("prompt-chunking/random", None, None, {"prompt_tokens": 60}),
        ("prompt-chunking/random", None, None, {"prompt_tokens": 30}),
        (
            "fair-goodput/per-second",
            "verify_seconds_per_token",
            0.003,
            {"clients": 5, "budget": 12},
        ),
    ],
)
def test_plans_of_similar_problems_are_repaired(
    family: str, field: str | None, value: object, more: dict[str, int]
) -> None:
    """Tests that a plan of a problem with other limits, or a task more or less, is one to start
    from.
    """
    usual = {"tasks": 5, "requests": 12, "clients": 5, "prompt_tokens": 44}
    like = more | {name: usual[name] for name in more if name in usual}
    plan = solve(generate(family, seed=1, **like)).plan
    problem = generate(family, seed=1, **more)
    problem = problem if field is None else with_field(problem, field, value)
    assert problem.violations(plan) or field == "bandwidth_hz"
    started = solve(problem, warm_start=plan, time_limit=0)
    assert problem.violations(started.plan) == []
    default: Any = specopt.methods(problem)[0]()
    repaired = default.repaired(problem, plan)
    assert problem.violations(repaired) == []
    sign = 1.0 if problem.sense == "minimize" else -1.0
    assert sign * started.objective <= sign * problem.evaluate(repaired).objective


def test_what_is_not_simple_to_repair_is_refused() -> None:
    """Tests that a plan that cannot be repaired is refused with its reason, and any by a method
    without repairs.
    """
    plan = solve(generate("fair-goodput/paper-5", clients=3, budget=6, seed=1)).plan
    with pytest.raises(InvalidInput, match="warm_start: the plan is not feasible"):
        solve(generate("fair-goodput/paper-5", clients=4, budget=6, seed=1), warm_start=plan)
    served = solve(generate("serving-latency/paper-1", tasks=3, seed=1)).plan
    with pytest.raises(InvalidInput, match="warm_start: the plan is not feasible"):
        solve(generate("serving-latency/paper-1", tasks=4, seed=1), "exact", warm_start=served)
