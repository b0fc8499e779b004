"""Conformance: every registered method on every small instance that it does not refuse.

A new kind of problem adds one entry to `INSTANCES`; a new method adds nothing.
"""

from __future__ import annotations

import dataclasses
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from specopt import (
    DraftAllocationProblem,
    DraftControlProblem,
    FairGoodputProblem,
    InvalidInput,
    Problem,
    Progress,
    PromptChunkingProblem,
    Result,
    ServingLatencyProblem,
    Status,
    Termination,
    Unsupported,
    VerificationBatchProblem,
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


def serving_latency() -> dict[str, Problem]:
    """Small instances of `serving-latency`: sizes 1 and 2, ties, mechanisms, runtimes, tight and no memory."""
    family = "serving-latency/paper-1"
    base = generate(family, tasks=5, max_input=40, max_output=24, seed=1)
    assert isinstance(base, ServingLatencyProblem)
    assert base.draft is not None
    tokens = int(base.input_tokens.max()) + base.longest_output
    parameters, kv = base.draft.parameter_bytes, base.draft.kv_bytes_per_token
    replace = dataclasses.replace
    roofline = {
        "draft_runtime": {"pieces": [{"seconds_per_flop": 0.0, "overhead_seconds": 2e-3},
                                     {"seconds_per_flop": 4e-13, "overhead_seconds": 1e-3}]},
        "verify_runtime": {"pieces": [{"seconds_per_flop": 0.0, "overhead_seconds": 2e-2},
                                      {"seconds_per_flop": 2e-14, "overhead_seconds": 1e-2}]},
    }  # fmt: skip
    one = generate(family, tasks=1, max_input=40, max_output=24, seed=2)
    two = generate(family, tasks=2, max_input=40, max_output=24, seed=3, pair="68M-7B")
    equal = base.to_dict() | {"input_tokens": [7] * 5, "output_tokens": [9] * 5, "snr": [100.0] * 5}
    single_step = base.to_dict() | {"output_tokens": [1] * 5, "max_output_tokens": 1}
    return {
        "base": base,
        "one task": one,
        "two tasks": two,
        "equal tasks": ServingLatencyProblem.from_dict(equal),
        "one step": ServingLatencyProblem.from_dict(single_step),
        "one length": replace(base, max_speculation_length=1),
        "tight memory": replace(base, draft_memory_bytes=float(parameters + 2 * kv * tokens)),
        "batches of one": replace(base, draft_memory_bytes=float(parameters + kv * tokens)),
        "verify memory": replace(
            base, verify_memory_bytes=float(base.verify.parameter_bytes + 3 * base.verify.kv_bytes_per_token * tokens)
        ),
        "piecewise": ServingLatencyProblem.from_dict(base.to_dict() | roofline),
        "known": replace(base, output_lengths="known"),
        "sequential": replace(base, mechanism="sequential"),
        "autoregressive": replace(base, mechanism="autoregressive"),
        "any": replace(base, mechanism="any"),
        "infeasible": replace(base, draft_memory_bytes=float(parameters + kv * tokens - 1)),
        "infeasible autoregressive": replace(base, mechanism="autoregressive", verify_memory_bytes=1e9),
    }


def draft_allocation() -> dict[str, Problem]:
    """Small instances of `draft-allocation`: sizes 1 and 4, ties, zeros, caps, more budget than use."""
    base = generate("draft-allocation/uniform", clients=4, budget=9, seed=1)
    assert isinstance(base, DraftAllocationProblem)
    replace = dataclasses.replace
    return {
        "base": base,
        "paper": generate("draft-allocation/paper-5"),
        "one client": generate("draft-allocation/uniform", clients=1, budget=5),
        "equal clients": replace(base, acceptance_rates=[0.5] * 4, weights=[1.0] * 4),
        "ties": replace(base, acceptance_rates=[0.5] * 4, weights=[1.0, 0.5, 0.25, 2.0], budget_tokens=6),
        "no budget": replace(base, budget_tokens=0),
        "no acceptance": replace(base, acceptance_rates=[0.0] * 4),
        "some zeros": replace(base, acceptance_rates=[0.0, 0.9, 0.8, 0.0], weights=[1.0, 0.0, 1.0, 0.0]),
        "no weights": replace(base, weights=[0.0] * 4),
        "caps": replace(base, max_draft_tokens=[0, 1, 5, 2]),
        "caps below the budget": replace(base, max_draft_tokens=[1, 1, 0, 2]),
        "rates next to 1": replace(base, acceptance_rates=[1 - 1e-12, 1 - 1e-9, 1 - 2**-53, 0.5]),
    }


def fair_goodput() -> dict[str, Problem]:
    """Small instances of `fair-goodput`: per round and second, utilities, caps, least rates, none of either."""
    base = generate("fair-goodput/paper-5", clients=3, budget=7, rates="wide")
    timed = generate("fair-goodput/per-second", clients=3, budget=6, seed=1)
    assert isinstance(base, FairGoodputProblem) and isinstance(timed, FairGoodputProblem)
    replace = dataclasses.replace
    return {
        "base": base,
        "per second": timed,
        "sum per second": replace(timed, fairness=0.0),
        "one client": generate("fair-goodput/paper-5", clients=1, budget=5),
        "one client per second": generate("fair-goodput/per-second", clients=1, budget=5),
        "equal clients": replace(base, acceptance_rates=[0.5] * 3),
        "weighted sum": replace(base, fairness=0.0, weights=[1.0, 2.0, 0.5]),
        "much fairness": replace(base, fairness=5.0),
        "little fairness per second": replace(timed, fairness=0.25, weights=[1.0, 2.0, 0.5]),
        "no budget": replace(base, budget_tokens=0),
        "no budget per second": replace(timed, budget_tokens=0),
        "no acceptance": replace(base, acceptance_rates=[0.0] * 3),
        "some acceptance per second": replace(timed, acceptance_rates=[0.0, 0.9, 0.0]),
        "caps": replace(base, max_draft_tokens=[0, 1, 9]),
        "caps below the budget": replace(base, max_draft_tokens=[1, 1, 2]),
        "least rates": replace(base, fairness=2.0, min_goodput=[1.35, 0.0, 2.0]),
        "least rates per second": replace(timed, min_goodput=[7.0, 3.0, 0.0]),
        "least rates for a sum per second": replace(timed, fairness=0.0, min_goodput=[7.0, 3.0, 0.0]),
        "infeasible": replace(base, min_goodput=[1.4, 2.0, 6.0]),
        "infeasible for one": replace(base, min_goodput=[1.5, 0.0, 0.0]),
        "infeasible per second": replace(timed, min_goodput=[60.0, 60.0, 60.0]),
    }


def verification_batch() -> dict[str, Problem]:
    """Small instances of `verification-batch`: no, one and some requests, ties, late ones, tight and no memory."""
    family = "verification-batch"
    base = generate(f"{family}/mixed", requests=10, seed=1)
    assert isinstance(base, VerificationBatchProblem)
    replace = dataclasses.replace
    n = base.requests
    return {
        "base": base,
        "no requests": generate(f"{family}/warm", requests=0),
        "one request": generate(f"{family}/warm", requests=1, seed=4),
        "tight": generate(f"{family}/tight", requests=12, seed=2),
        "memory": generate(f"{family}/memory-bound", requests=12, seed=3),
        "no memory": replace(base, memory_bytes=0.0),
        "all late": replace(base, deadline_seconds=[-1.0] * n),
        "all fit": replace(base, deadline_seconds=[9.0] * n),
        "equal deadlines": replace(base, deadline_seconds=[0.04] * n),
        "equal requests": replace(
            base, expected_tokens=[2.0] * n, new_tokens=[4] * n, cached_tokens=[500] * n, deadline_seconds=[0.03] * n
        ),
        "worth nothing": replace(base, expected_tokens=[0.0] * n),
        "free": replace(base, new_tokens=[0] * n, cached_tokens=[0] * n),
        "guarded": replace(base, guard_seconds=0.05),
    }


def draft_control() -> dict[str, Problem]:
    """Small instances of `draft-control`: one and some states, periodic and transient ones, codes, extreme rates."""
    base = {
        "format": "specopt/1", "kind": "draft-control", "vocabulary_size": 50272, "draft_seconds_per_token": 1e-3,
        "verify_seconds": 0.1, "draft_lengths": [1, 32], "resolutions": [100],
        "states": [{"uplink_bits_per_second": 5e4, "acceptance_rates": [0.9]},
                   {"uplink_bits_per_second": 1e7, "acceptance_rates": [0.9]}],
        "transition": [[0.0, 1.0], [1.0, 0.0]],
    }  # fmt: skip
    slow = {"uplink_bits_per_second": 3e4, "downlink_bits_per_second": 1e3, "acceptance_rates": [0.2, 0.5],
            "distribution_bits": [20.0, 90.5]}  # fmt: skip
    fast = {"uplink_bits_per_second": 2e6, "downlink_bits_per_second": 5e4, "acceptance_rates": [0.6, 0.8],
            "distribution_bits": [15.0, 70.0]}  # fmt: skip
    small = base | {"draft_lengths": [0, 4], "resolutions": [200, 5], "states": [slow, fast, slow]}
    mixing = [[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    one = base | {"states": [slow], "resolutions": [200, 5], "transition": [[1.0]]}
    sure = [{**state, "acceptance_rates": [1.0, 0.0]} for state in (slow, fast, slow)]
    cases = {
        "alternating": base,
        "no drafts allowed too": base | {"draft_lengths": [0, 32]},
        "mixing": small | {"transition": mixing},
        "support": small | {"transition": mixing, "distribution_code": "support"},
        "period 3": small | {"transition": [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]},
        "transient states": small | {"transition": [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]},
        "equal states": small | {"states": [fast] * 3, "transition": mixing},
        "sure and hopeless": small | {"states": sure, "transition": mixing},
        "free drafts": small | {"transition": mixing, "draft_seconds_per_token": 0.0},
        "free verification": small | {"transition": mixing, "verify_seconds": 0.0},
        "one action": small | {"transition": mixing, "draft_lengths": [2, 2]},
        "one state": one,
        "one state, free downlink": one | {"states": [{**slow, "downlink_bits_per_second": 1e18}]},
        "one state, many lengths": one | {"draft_lengths": [0, 300], "states": [fast]},
        "one state, no drafts": one | {"draft_lengths": [0, 0]},
    }
    return {name: DraftControlProblem.from_dict(data) for name, data in cases.items()}


def prompt_chunking() -> dict[str, Problem]:
    """Small instances of `prompt-chunking`: every wait and download, caps, grids, steps in g, no bytes, no delay."""
    base = generate("prompt-chunking/paper-4", prompt_tokens=10, message_milliseconds=0.5)
    assert isinstance(base, PromptChunkingProblem)
    replace = dataclasses.replace
    steps = {"tokens": [0.0, 10.0, 11.0, 16.0, 17.0], "seconds": [0.01, 0.01, 0.02, 0.02, 0.06]}
    return {
        "base": base,
        "random": generate("prompt-chunking/random", prompt_tokens=9, seed=1),
        "one token": replace(base, prompt_tokens=1),
        "one GPU": replace(base, pipeline_length=1),
        "no wait": replace(base, wait="none"),
        "overlapping wait": replace(base, wait="overlap"),
        "last token down": replace(base, download="last"),
        "last token down, no wait": replace(base, download="last", wait="none", message_overhead_seconds=0.0),
        "two chunks": replace(base, max_chunks=2),
        "grid": replace(base, grid_tokens=4),
        "grid and cap": replace(base, grid_tokens=3, max_chunks=3),
        "grid beyond the prompt": replace(base, grid_tokens=64),
        "local": replace(base, local_overhead_seconds=1e-3, local_seconds_per_token=2e-3, head_seconds=5e-3),
        "latency": replace(base, link_latency_seconds=0.02),
        "no bytes": replace(base, bytes_per_token=0.0),
        "steps": PromptChunkingProblem.from_dict(base.to_dict() | {"cloud_delay": steps}),
        "no delay": PromptChunkingProblem.from_dict(
            base.to_dict() | {"cloud_delay": {"tokens": [0.0, 1.0], "seconds": [0.0, 0.0]}}
        ),
    }


INSTANCES: dict[str, dict[str, Problem]] = {
    "serving-latency": serving_latency(),
    "prompt-chunking": prompt_chunking(),
    "draft-allocation": draft_allocation(),
    "fair-goodput": fair_goodput(),
    "verification-batch": verification_batch(),
    "draft-control": draft_control(),
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
        DraftControlProblem.from_dict(draft_control()["alternating"].to_dict() | actions),
    ]


LARGE = large()
VALUES: dict[type[Method], tuple[Method, ...]] = {Milp: (Milp(), Milp(length=11))}
"""Methods that take more or less with options."""

every_case = pytest.mark.parametrize(("method", "problem"), CASES)
one_each = pytest.mark.parametrize(("method", "problem"), ONE_EACH)


def test_every_kind_has_instances() -> None:
    """Tests that this suite knows every kind of problem."""
    assert set(INSTANCES) == {kind.name for kind in KINDS}


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
