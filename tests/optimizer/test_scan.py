"""Changed copies of a problem: what limits, reasons and plans to start from they get."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from specopt import ServingLatencyProblem, solve
from specopt.api.scan import scan, solving
from specopt.solvers.serving_latency.baselines import StaticBatching


def test_every_copy_gets_an_equal_part_of_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that limits add up to the time limit, and that a change without a copy takes none and
    keeps its reason.
    """
    now = 100.0
    monkeypatch.setattr("specopt.api.scan.time.perf_counter", lambda: now)
    limits = []

    def answer(copy: int, limit: float | None, earlier: Sequence[Any]) -> int:
        nonlocal now
        now += copy
        limits.append(limit)
        return copy + len(earlier)

    changes = [("one", 1), ("none", "not allowed"), ("three", 3), ("two", 2)]
    assert scan(changes, answer, started=98.0, time_limit=11.0) == [1, "not allowed", 5, 5]
    assert limits == [3.0, 4.0, 5.0]
    assert scan([("nine", 9), ("one", 1)], answer, time_limit=4.0) == [9, 2]
    assert limits[3:] == [2.0, 0.0]
    assert scan([("one", 1)], answer) == [1] and limits[-1] is None


def test_a_plan_that_violates_the_copy_is_no_start(
    small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a solve starts from a plan only where the method can use it and the copy allows
    it.
    """
    first, last = (solve(small, name) for name in ("max-batching", "no-batching"))
    starts = []

    def recorded(*problem: Any, warm_start: Any, time_limit: Any) -> Any:
        starts.append(warm_start)

    monkeypatch.setattr("specopt.api.scan.solve", recorded)
    smaller = dataclasses.replace(small, draft_memory_bytes=1.0)
    for copy, method, start in (
        (small, None, 0),
        (small, None, -1),
        (smaller, None, 0),
        (small, StaticBatching(), 0),
    ):
        solving(method, start)(copy, None, [first, last])
    assert starts == [first.plan, last.plan, None, None]
