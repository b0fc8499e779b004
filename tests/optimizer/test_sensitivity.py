"""What one more unit of each resource is worth."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import pytest

import specopt
from specopt import (
    Change,
    InvalidInput,
    LinearRuntime,
    Problem,
    Result,
    Sensitivity,
    ServingLatencyProblem,
    Status,
    Termination,
    Unsupported,
    generate,
    sensitivity,
    solve,
)
from specopt.api.what_if import _bounds
from specopt.kinds import KINDS
from specopt.kinds.kind import Kind

UNITS: dict[str, Any] = {
    "bandwidth_hz": lambda p: p.bandwidth_hz + 1e6,
    "draft_memory_bytes": lambda p: p.draft_memory_bytes + 1e9,
    "verify_memory_bytes": lambda p: p.verify_memory_bytes + 1e9,
    "acceptance_rate": lambda p: p.acceptance_rate + 0.01,
    "max_speculation_length": lambda p: p.max_speculation_length + 1,
    "draft_runtime": lambda p: faster(p.draft_runtime),
    "verify_runtime": lambda p: faster(p.verify_runtime),
}


def faster(line: LinearRuntime) -> LinearRuntime:
    """Return a runtime whose passes take one per cent less."""
    return LinearRuntime(
        seconds_per_flop=0.99 * line.seconds_per_flop,
        overhead_seconds=0.99 * line.overhead_seconds,
    )


@pytest.fixture
def tight(small: ServingLatencyProblem) -> ServingLatencyProblem:
    """Five tasks with memory for two or three of them at a time in both models."""
    assert small.draft is not None
    tokens = int(small.input_tokens.max()) + small.longest_output
    return dataclasses.replace(
        small,
        draft_memory_bytes=small.draft.parameter_bytes
        + 2.2 * small.draft.kv_bytes_per_token * tokens,
        verify_memory_bytes=small.verify.parameter_bytes
        + 3.2 * small.verify.kv_bytes_per_token * tokens,
    )


def test_changes_are_differences_of_optima(tight: ServingLatencyProblem) -> None:
    """Tests that every change is the one that brute force finds with and without one more unit."""
    before = solve(tight, "brute-force").objective
    assert before is not None
    found = sensitivity(tight)
    assert [change.field for change in found.changes] == list(UNITS)
    for change in found.changes:
        more = dataclasses.replace(tight, **{change.field: UNITS[change.field](tight)})
        after = solve(more, "brute-force").objective
        assert after is not None
        assert change.proven
        assert change.before == pytest.approx(before, rel=1e-9)
        assert change.after == pytest.approx(after, rel=1e-9)
        assert change.change == pytest.approx(after - before, abs=2e-9 * before)
        assert change.percent == pytest.approx(100 * (after - before) / before, abs=1e-6)
        assert change.bounds == (change.change, change.change)
        assert change.explanation is None
        if change.field != "acceptance_rate":  # the one resource that can hurt
            assert change.change is not None and change.change <= 0


def test_binding_memory_is_worth_something(small: ServingLatencyProblem) -> None:
    """Tests that memory has a price exactly where it binds, and that ample verify memory is not
    listed.
    """
    assert small.draft is not None
    tokens = int(small.input_tokens.max()) + small.longest_output
    one_by_one = small.draft.parameter_bytes + 1.2 * small.draft.kv_bytes_per_token * tokens
    bound = sensitivity(dataclasses.replace(small, draft_memory_bytes=one_by_one))
    price = next(change.change for change in bound.changes if change.field == "draft_memory_bytes")
    assert price is not None and price < 0
    ample = {change.field: change.change for change in sensitivity(small).changes}
    assert ample["draft_memory_bytes"] == 0
    assert "verify_memory_bytes" not in ample


def test_autoregressive_has_no_draft_resources(tight: ServingLatencyProblem) -> None:
    """Tests that without a draft stage only what takes part is listed."""
    found = sensitivity(dataclasses.replace(tight, mechanism="autoregressive"))
    assert [change.field for change in found.changes] == [
        "bandwidth_hz",
        "verify_memory_bytes",
        "verify_runtime",
    ]
    assert all(change.proven for change in found.changes)


def test_a_unit_that_leaves_the_domain_is_explained(small: ServingLatencyProblem) -> None:
    """Tests that an acceptance rate that cannot rise by 0.01 says why instead of failing."""
    found = sensitivity(dataclasses.replace(small, acceptance_rate=0.995))
    change = next(change for change in found.changes if change.field == "acceptance_rate")
    assert change.explanation is not None and "acceptance_rate" in change.explanation
    assert (change.after, change.change, change.percent, change.proven) == (None, None, None, False)
    assert len([one for one in found.changes if one.proven]) == len(found.changes) - 1


def test_infeasible_problems(small: ServingLatencyProblem) -> None:
    """Tests that without a plan there are no differences, but what would make one possible is
    told.
    """
    assert small.draft is not None
    problem = dataclasses.replace(small, draft_memory_bytes=small.draft.parameter_bytes - 1.0)
    found = sensitivity(problem)
    assert found.base.status is Status.INFEASIBLE
    for change in found.changes:
        assert change.before is None and change.change is None and not change.proven
        assert change.explanation
        assert (change.after is not None) == (change.field == "draft_memory_bytes")
    enough = next(change for change in found.changes if change.field == "draft_memory_bytes")
    assert enough.explanation == "a plan exists only with +1 GB draft memory"
    json.dumps(found.to_dict(), allow_nan=False)


def result_of(problem: Problem, objective: float | None, bound: float | None) -> Result:
    """A result of which only objective and bound matter."""
    return dataclasses.replace(solve(problem, "static-batching"), objective=objective, bound=bound)


@pytest.mark.parametrize(
    ("sense", "before", "after", "expected"),
    [
        ("minimize", (10.0, 8.0), (9.0, 7.0), (-3.0, 1.0)),
        ("minimize", (10.0, None), (9.0, 7.0), (-3.0, None)),
        ("minimize", (10.0, 8.0), (9.0, None), (None, 1.0)),
        ("minimize", (10.0, None), (9.0, None), (None, None)),
        ("maximize", (10.0, 12.0), (11.0, 14.0), (-1.0, 4.0)),
    ],
)
def test_bounds_of_a_change(
    small: ServingLatencyProblem,
    monkeypatch: pytest.MonkeyPatch,
    sense: str,
    before: tuple[float, float | None],
    after: tuple[float, float | None],
    expected: tuple[float | None, float | None],
) -> None:
    """Tests that the interval of a change covers optima that are known only to within their
    gaps.
    """
    results = result_of(small, *before), result_of(small, *after)
    monkeypatch.setattr(type(small), "sense", sense)
    assert _bounds(small, *results) == expected


def test_heuristics_are_not_proven(tight: ServingLatencyProblem) -> None:
    """Tests that a method without proof runs for all, with its interval open, and contains the true
    change.
    """
    true = {change.field: change.change for change in sensitivity(tight).changes}
    found = sensitivity(tight, "static-batching")
    assert found.base.method == "static-batching"
    for change in found.changes:
        assert not change.proven
        assert change.change is not None
        low, high = change.bounds
        known = true[change.field]
        assert known is not None
        assert low is None or low <= known + 1e-9
        assert high is None or high >= known - 1e-9


def test_the_time_limit_covers_everything(own_clock: None) -> None:
    """Tests that the solves share the limit, and that no time at all still gives quick plans."""
    problem = generate("serving-latency/paper-1", tasks=300, alpha=0.9, seed=3)
    for _ in range(3):  # compiles here, if at all
        sensitivity(problem, time_limit=0.3)
    for limit in (0.0, 1.0):
        started = time.perf_counter()
        found = sensitivity(problem, time_limit=limit)
        assert time.perf_counter() - started <= 1.05 * limit + 0.5
        assert found.base.plan is not None
        assert len(found.changes) == 6
        for change in found.changes:
            low, high = change.bounds
            assert change.change is not None
            assert low is None or low <= change.change + 1e-9
            assert high is None or high >= change.change - 1e-9


def test_an_interrupt_ends_the_series(
    small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that after Ctrl-C in one solve the others are not begun, and what was found is kept."""
    calls = 0

    def interrupted(*arguments: Any, **options: Any) -> Result:
        nonlocal calls
        calls += 1
        result = solve(*arguments, **options)
        return (
            dataclasses.replace(result, termination=Termination.INTERRUPTED)
            if calls == 3
            else result
        )

    monkeypatch.setattr("specopt.api.scan.solve", interrupted)
    found = sensitivity(small)
    assert calls == 3
    assert len(found.changes) == 2
    assert found.interrupted


def test_to_dict_is_json(tight: ServingLatencyProblem) -> None:
    """Tests that the JSON form says how the numbers came about and has one entry per resource."""
    found = sensitivity(tight, time_limit=600)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["how"] == "finite differences on re-solved optima"
    assert data["problem_sha256"] == tight.sha256
    assert data["objective"] == found.base.objective
    assert [entry["field"] for entry in data["changes"]] == list(UNITS)
    names = {entry.name for entry in dataclasses.fields(Change)} - {"result"} | {"status"}
    assert all(set(entry) == names for entry in data["changes"])
    assert isinstance(found, Sensitivity) and not found.interrupted


def test_refusals(small: ServingLatencyProblem) -> None:
    """Tests that bad arguments, and unknown methods are refused by name."""
    with pytest.raises(InvalidInput, match="problem: expected a specopt problem, got 3"):
        sensitivity(3)  # type: ignore[arg-type]
    for limit in (-1.0, float("nan")):
        with pytest.raises(InvalidInput, match=f"time_limit.*{limit}"):
            sensitivity(small, time_limit=limit)
    with pytest.raises(InvalidInput, match="gap"):
        sensitivity(small, gap=-1.0)
    with pytest.raises(Unsupported, match="magic"):
        sensitivity(small, "magic")


def test_verbose_shows_the_solves(
    small: ServingLatencyProblem,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that progress goes to stderr, and only on request."""
    monkeypatch.setattr("specopt.console.progress.FIRST_SECONDS", 0.0)
    specopt.sensitivity(small)
    assert capsys.readouterr().err == ""
    specopt.sensitivity(small, verbose=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "solve 1 of 7: the unchanged problem" in captured.err


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_has_resources(kind: Kind) -> None:
    """Tests that more of a resource of any kind is never worse, by proven plans of problems that
    differ in it alone.
    """
    chosen = {"placement": "one-class", "continuous-serving": "paper-1"}
    proven = chosen.get(kind.name, kind.families[0].label)
    small = {"continuous-serving": {"tasks": 2, "max_output": 3}}.get(kind.name, {})
    family = next(family for family in kind.families if family.label == proven)
    problem = family.generate(seed=1, **small)
    found = sensitivity(problem)
    sign = 1.0 if problem.sense == "minimize" else -1.0
    assert len(found.changes) >= 2
    for change in found.changes:
        assert change.result is None or change.result.problem_sha256 != problem.sha256
        if change.change is not None and "acceptance" not in change.unit:
            assert change.proven and sign * change.change <= 0.0, change.unit
    assert any(change.change for change in found.changes) or kind.name == "verification-batch"


@pytest.mark.parametrize(
    "runtime",
    [
        {"passes": {"batch": [1, 8], "new_tokens": [1, 1], "seconds": [0.1, 0.2]}},
        {
            "pieces": [
                {"seconds_per_flop": 0.0, "overhead_seconds": 0.5},
                {"seconds_per_flop": 1e-12, "overhead_seconds": 0.05},
            ]
        },
    ],
    ids=["passes", "pieces"],
)
def test_runtimes_of_other_forms_are_one_per_cent_faster(
    runtime: dict[str, Any], small: ServingLatencyProblem
) -> None:
    """Tests that a runtime that is a table of passes, whose columns nothing compares, or a maximum
    of lines, is changed like a line.
    """
    data = small.to_dict() | {"verify_runtime": runtime, "mechanism": "autoregressive"}
    problem = ServingLatencyProblem.from_dict(data)
    (faster,) = (one for one in sensitivity(problem).changes if one.field == "verify_runtime")
    assert faster.change == pytest.approx(-0.01 * solve(problem).terms["inference_seconds"])
