"""Conformance: every registered method on every small instance that it does not refuse.

A new kind of problem adds a file to `small_instances`; a new method adds nothing.
"""

from __future__ import annotations

import dataclasses
import time
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from specopt import (
    DraftControlProblem,
    InvalidInput,
    Problem,
    Progress,
    PromptChunkingProblem,
    Result,
    Status,
    Termination,
    Unsupported,
    generate,
    load,
    methods,
    save,
    solve,
    verify,
)
from specopt.kinds import KINDS
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.milp import Milp
from specopt.views.methods import method_entry, print_methods

METHODS = methods()
INSTANCES: dict[str, dict[str, Problem]] = {
    kind.name: import_module(f"small_instances.{kind.name.replace('-', '_')}").INSTANCES for kind in KINDS
}

CASES = [
    pytest.param(method, problem, id=f"{method.solves.kind}: {method.name}: {name}")
    for method in METHODS
    for name, problem in INSTANCES[method.solves.kind].items()
    if method().refusal(problem) is None
]
ONE_EACH = [
    pytest.param(method, next(p for p in INSTANCES[method.solves.kind].values() if method().refusal(p) is None),
                 id=f"{method.solves.kind}: {method.name}")
    for method in METHODS
]  # fmt: skip
REFUSALS = [
    pytest.param(method, problem, id=f"{method.solves.kind}: {method.name}: {name}")
    for method in METHODS
    for name, problem in INSTANCES[method.solves.kind].items()
    if method().refusal(problem) is not None
]


def large() -> list[Problem]:
    """Instances beyond each limit on size; nothing solves them here."""
    paper_1, uniform, fair, timed = (
        "serving-latency/paper-1", "draft-allocation/uniform", "fair-goodput/paper-5", "fair-goodput/per-second"
    )  # fmt: skip
    state = {"uplink_bits_per_second": 5e4, "acceptance_rates": [0.5] * 2001}
    actions = {"draft_lengths": [0, 9999], "resolutions": [*range(1, 2002)], "states": [state], "transition": [[1.0]]}
    long = generate("prompt-chunking/paper-4", prompt_tokens=20_000)
    return [
        generate(paper_1, tasks=9, max_input=40, max_output=24),
        generate(paper_1, tasks=4, max_output=512),
        generate(uniform, clients=100, budget=100),
        generate(fair, clients=20_001, budget=20_001),
        generate(timed, clients=1000, budget=20_000),
        generate("verification-batch/mixed", requests=301),
        generate("prompt-chunking/paper-4", prompt_tokens=60_000),
        PromptChunkingProblem.from_dict(long.to_dict() | {"pipeline_length": 1000}),
        DraftControlProblem.from_dict(INSTANCES["draft-control"]["alternating"].to_dict() | actions),
    ]


LARGE = large()
VALUES: dict[type[Method], tuple[Method, ...]] = {Milp: (Milp(), Milp(length=11))}
"""Methods that take more or less with options."""

every_case = pytest.mark.parametrize(("method", "problem"), CASES)
one_each = pytest.mark.parametrize(("method", "problem"), ONE_EACH)


def test_names_are_unique() -> None:
    """Tests that a method is found by its kind and name alone."""
    names = [(method.solves.kind, method.name) for method in METHODS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.solves.kind}: {method.name}")
def test_methods_say_what_they_are(method: type[Method]) -> None:
    """Tests that source, guarantee, complexity are stated, options are frozen with defaults, the file has the name."""
    assert method.__module__.rpartition(".")[2] == method.name.replace("-", "_")
    assert method.source and method.guarantee and method.complexity
    assert method().options == {field.name: field.default for field in dataclasses.fields(method)}
    with pytest.raises(dataclasses.FrozenInstanceError):
        method().anything = 1  # type: ignore[attr-defined]


def check(problem: Problem, result: Result) -> None:
    """Check that a result is consistent, and that the judge agrees with it."""
    assert result.kind == problem.kind
    assert result.problem_sha256 == problem.sha256
    assert result.seconds >= 0
    if result.status in (Status.INFEASIBLE, Status.NONE):
        assert result.plan is None
        assert result.objective is None
        assert result.gap is None
        assert result.terms == {}
        assert result.explanation
        return
    assert result.plan is not None
    assert result.explanation is None
    report = verify(problem, result)
    assert report.feasible, report.violations
    assert report.matches
    assert report.objective == result.objective
    assert result.objective is not None
    assert sum(result.terms.values()) == pytest.approx(result.objective, rel=1e-12)
    if result.bound is not None:
        assert (result.bound <= result.objective) == (problem.sense == "minimize") or result.bound == result.objective
        gap = problem.gap(result.objective, result.bound)
        tolerance = next(m.tolerance for m in METHODS if (m.solves.kind, m.name) == (result.kind, result.method))
        assert result.gap == pytest.approx(gap, abs=tolerance)


@every_case
def test_solves(method: type[Method], problem: Problem) -> None:
    """Tests that status, termination, judge and bound agree, and that exact methods prove their plans optimal."""
    before = problem.to_dict()
    result = solve(problem, method.name)
    check(problem, result)
    assert result.method == method.name
    assert problem.to_dict() == before
    best = solve(problem).status
    if best is Status.INFEASIBLE:
        assert result.status is Status.INFEASIBLE
        assert result.termination is Termination.INFEASIBLE
    else:
        assert result.termination is Termination.CONVERGED
        assert result.status in ((Status.OPTIMAL,) if method.exact else (Status.OPTIMAL, Status.FEASIBLE))


@every_case
def test_exact_is_unbeaten(method: type[Method], problem: Problem) -> None:
    """Tests that no method beats an exact one, and that no bound cuts off what another has found."""
    result = solve(problem, method.name)
    if result.objective is None:
        return
    sign = 1 if problem.sense == "minimize" else -1
    for other in METHODS:
        if other.solves is not method.solves or other().refusal(problem) is not None:
            continue
        rival = solve(problem, other.name)
        assert rival.objective is not None
        slack = max(method.tolerance, other.tolerance) * max(1.0, abs(result.objective))
        if result.bound is not None:
            assert sign * rival.objective >= sign * result.bound - slack
        if method.exact:
            assert sign * rival.objective >= sign * result.objective - slack


@every_case
def test_same_seed_same_plan(method: type[Method], problem: Problem) -> None:
    """Tests that the same seed gives the same plan twice."""
    first, second = (solve(problem, method.name, seed=7) for _ in range(2))
    assert first.plan == second.plan
    assert first.objective == second.objective
    assert first.bound == second.bound


@every_case
def test_time_limit_0(method: type[Method], problem: Problem) -> None:
    """Tests that no time gives a quick plan or none, at once, and never a wrong claim."""
    started = time.perf_counter()
    result = solve(problem, method.name, time_limit=0)
    assert time.perf_counter() - started < 0.5
    check(problem, result)
    if result.plan is None and result.status is not Status.INFEASIBLE:
        assert result.status is Status.NONE
        assert result.termination is Termination.TIME_LIMIT


@one_each
def test_gap(method: type[Method], problem: Problem) -> None:
    """Tests that with a wide gap every plan with a bound counts as optimal, and says that the gap did it."""
    result = solve(problem, method.name, gap=1e9)
    check(problem, result)
    if result.bound is not None:
        assert result.status is Status.OPTIMAL
        assert result.termination is (Termination.GAP if result.gap else Termination.CONVERGED)


@one_each
def test_callback_is_called(method: type[Method], problem: Problem) -> None:
    """Tests that progress is reported in time order, and that returning None changes nothing."""
    seen: list[Progress] = []
    result = solve(problem, method.name, callback=seen.append)
    check(problem, result)
    assert seen
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)
    assert result.objective == solve(problem, method.name).objective
    with_plan = [p for p in seen if p.objective is not None]
    sign = 1 if problem.sense == "minimize" else -1
    objectives = [sign * p.objective for p in with_plan if p.objective is not None]
    assert objectives == sorted(objectives, reverse=True)


@one_each
def test_callback_may_stop(method: type[Method], problem: Problem) -> None:
    """Tests that returning True ends the solve with the plan that there is."""
    calls = 0

    def stop(progress: Progress) -> bool:
        nonlocal calls
        calls += 1
        return True

    result = solve(problem, method.name, callback=stop)
    check(problem, result)
    assert result.plan is not None
    assert result.termination in (Termination.INTERRUPTED, Termination.CONVERGED)
    assert calls >= 1


@one_each
def test_interrupt_keeps_the_plan(method: type[Method], problem: Problem) -> None:
    """Tests that Ctrl-C gives the best plan so far as a result."""

    def interrupt(progress: Progress) -> None:
        if progress.objective is not None:
            raise KeyboardInterrupt

    result = solve(problem, method.name, callback=interrupt)
    check(problem, result)
    assert result.plan is not None
    assert result.termination is Termination.INTERRUPTED


@one_each
def test_round_trip(method: type[Method], problem: Problem, tmp_path: Path) -> None:
    """Tests that a saved result is the same result, and that the judge agrees with what was loaded."""
    result = solve(problem, method.name)
    save(result, tmp_path / "result.json")
    again = load(tmp_path / "result.json")
    assert isinstance(again, Result)
    assert again.to_dict() == result.to_dict()
    assert verify(problem, again).matches
    assert method(**again.options) == method()


@one_each
def test_warm_start(method: type[Method], problem: Problem) -> None:
    """Tests that a warm start is used, or refused with the methods that can use one."""
    earlier = solve(problem)
    if method.supports_warm_start:
        result = solve(problem, method.name, warm_start=earlier)
        check(problem, result)
        assert result.objective == pytest.approx(earlier.objective, rel=1e-9)
        return
    with pytest.raises(Unsupported, match=f"warm_start: method {method.name} cannot use one; methods that can: "):
        solve(problem, method.name, warm_start=earlier)


@one_each
def test_arguments_are_checked(method: type[Method], problem: Problem) -> None:
    """Tests that arguments outside their domain are refused by name."""
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("time_limit", {"time_limit": -1}),
        ("time_limit", {"time_limit": float("nan")}),
        ("gap", {"gap": -0.1}),
        ("gap", {"gap": float("inf")}),
        ("gap", {"gap": float("nan")}),
        ("seed", {"seed": -1}),
        ("seed", {"seed": 1.5}),
        ("seed", {"seed": True}),
    ]
    for name, arguments in wrong:
        with pytest.raises(InvalidInput, match=f"^{name}: expected"):
            solve(problem, method.name, **arguments)


@pytest.mark.parametrize(("method", "problem"), REFUSALS)
def test_refusals_name_the_methods_that_can(method: type[Method], problem: Problem) -> None:
    """Tests that a method that cannot take a problem says why, before it starts, and which can."""
    with pytest.raises(
        Unsupported, match=f"method {method.name} cannot take this problem: .*; methods that can: "
    ) as e:
        solve(problem, method.name)
    clashes = [(condition.clash(method(), problem), condition.takes) for condition in method.conditions()]
    clash, takes = next(pair for pair in clashes if pair[0] is not None)
    assert f": it has {clash}, the method takes {takes}; " in str(e.value)
    able = str(e.value).rpartition("methods that can: ")[2].split(", ")
    for other in METHODS:
        if other.solves is method.solves:
            assert (other.name in able) == (other().refusal(problem) is None)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.solves.kind}: {method.name}")
def test_every_condition_counts_and_is_printed(method: type[Method]) -> None:
    """Tests that each condition of a method refuses some problem and not others, and that `specopt methods` has it."""
    problems = [*INSTANCES[method.solves.kind].values(), *(p for p in LARGE if isinstance(p, method.solves))]
    entry = method_entry(method)
    out = Console(file=StringIO(), width=400)
    print_methods([entry], out)
    assert entry["takes"] == [condition.takes for condition in method.conditions()]
    for condition in method.conditions():
        clashes = {condition.clash(value, p) is None for value in VALUES.get(method, (method(),)) for p in problems}
        assert clashes == {True, False}, condition.takes
        assert condition.takes in out.file.getvalue()  # type: ignore[attr-defined]
