"""Tests for what methods declare to hold, and what is refused before it is held."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
from helpers.instances import INSTANCES
from helpers.peak_memory import measured

import specopt
from specopt.models.errors import OutOfMemory, Unsupported
from specopt.models.memory import free_memory
from specopt.solvers import budget as budget_module
from specopt.solvers.budget import LARGE, Budget

SMALL = [problem for of_kind in INSTANCES.values() for problem in of_kind.values()]

NOISE = 16e6
"""Bytes that a second solve may hold beside its arrays: what it loads late, and what the allocator
keeps.
"""

HEAVY = [
    {
        "family": "draft-control/random",
        "method": "linear-program",
        "small": {"states": 2},
        "large": {"states": 160},
    },
    {
        "family": "draft-control/random",
        "method": "brute-force",
        "small": {"states": 2},
        "large": {"states": 6},
        "fields": {"draft_lengths": [0, 1]},
    },
    {
        "family": "draft-stopping/random",
        "method": "history-tree",
        "small": {"max_draft": 2, "bins": 3},
        "large": {"max_draft": 4, "bins": 31},
    },
    {
        "family": "fair-goodput/paper-5",
        "method": "convex",
        "small": {"clients": 3, "budget": 6},
        "large": {"clients": 1000, "budget": 10_000},
    },
    {
        "family": "serving-latency/paper-1",
        "method": "no-batching",
        "small": {"tasks": 5},
        "large": {"tasks": 50_000},
    },
    {
        "family": "draft-allocation/uniform",
        "method": "water-level",
        "small": {"clients": 5, "budget": 10},
        "large": {"clients": 500_000, "budget": 1_000_000},
    },
]


def test_every_method_declares_its_memory() -> None:
    """Tests that every method says what it holds of every small problem that it takes, and that
    more holds more.
    """
    for problem in SMALL:
        for method in specopt.methods(problem):
            needs = method().bytes_needed(problem)
            assert 0.0 < sum(needs.values()) < math.inf, method
            assert min(needs.values()) >= 0.0, method
    few, many = (
        specopt.generate("draft-allocation/uniform", clients=n, budget=9, seed=1)
        for n in (10, 1000)
    )
    assert few.numbers == 10 * 2 + 4
    for method in specopt.methods(many):
        assert sum(method().bytes_needed(many).values()) > 20 * sum(
            method().bytes_needed(few).values()
        ), method


def test_values_by_name_count() -> None:
    """Tests that every value of a list by name is a number of the problem, and that placement holds
    it.
    """
    one = specopt.generate("placement/one-class", seed=1)
    data = one.to_dict()
    [(machine, before)] = data["classes"][0]["round_trip_seconds"].items()
    data["classes"][0]["round_trip_seconds"] = {machine: [0.1] * 1000}
    many = one.from_dict(data)
    assert many.numbers - one.numbers == 1000 - len(before)
    for method in specopt.methods(many):
        few, more = (sum(method().bytes_needed(problem).values()) for problem in (one, many))
        assert more - few == pytest.approx(
            method.bytes_per_number * (many.numbers - one.numbers)
        ), method


@pytest.mark.nightly
@pytest.mark.parametrize("case", HEAVY, ids=lambda case: f"{case['family']}-{case['method']}")
def test_declared_bytes_hold_what_is_measured(case: dict[str, Any]) -> None:
    """Tests that a method holds no more than it declares, and not much less."""
    peak, declared = measured(case)
    assert peak - NOISE <= declared <= 4.0 * peak


def test_what_is_free_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that what is large is refused beyond what is free, unless no limit is wanted, and what
    is small is not.
    """
    problem = specopt.generate("draft-allocation/uniform", clients=10, budget=9, seed=1)
    monkeypatch.setattr(budget_module, "free_memory", lambda: 1e3)
    limited = Budget(problem)
    limited.hold("clients", LARGE)
    Budget(problem, memory_limit=math.inf).hold("clients", 2 * LARGE)
    with pytest.raises(
        OutOfMemory,
        match=r"clients need 1\.342e\+08 bytes of memory, but the free memory is 1000 bytes",
    ):
        limited.hold("clients", 2 * LARGE)
    small = specopt.generate("prompt-chunking/paper-4").to_dict()
    long = specopt.PromptChunkingProblem.from_dict(small | {"pipeline_length": 200_000})
    with pytest.raises(
        Unsupported, match=r"method deadline cannot .* but the free memory is 1000 bytes"
    ):
        specopt.solve(long, "deadline")


@pytest.mark.parametrize(
    ("family", "fields", "method", "limit", "words"),
    [
        (
            "continuous-serving/paper-1",
            {"output_lengths": "known"},
            "rebatching",
            1e6,
            "arrays over max_speculation_length",
        ),
        ("verification-batch/memory-bound", {}, "pareto", 3e4, "requests times thresholds"),
    ],
)
def test_what_grows_on_the_way_is_asked_for(
    family: str,
    fields: dict[str, Any],
    method: str,
    limit: float,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that tables whose size the numbers decide are not made where memory is short, and a
    plan comes back.
    """
    base = specopt.generate(family, seed=1, **{"tasks" if "serving" in family else "requests": 200})
    problem = base.from_dict(base.to_dict() | fields)
    chosen = next(one for one in specopt.methods(problem) if one.name == method)
    monkeypatch.setattr(chosen, "bytes_needed", lambda self, problem: {"all fields": 1.0})
    result = specopt.solve(problem, method, memory_limit=limit)
    assert words in result.stats["out_of_memory"] and result.plan is not None


def test_programs_of_many_rows_are_refused() -> None:
    """Tests that a program that is written out for every stage of a long pipeline is refused."""
    small = specopt.generate("prompt-chunking/paper-4").to_dict()
    long = specopt.PromptChunkingProblem.from_dict(
        small | {"pipeline_length": 100_000, "grid_tokens": 100}
    )
    with pytest.raises(
        Unsupported, match=r"milp cannot .*pairs of positions times pipeline_length need"
    ):
        specopt.solve(long, "milp")


def test_limits_of_the_process_count() -> None:
    """Tests that the memory that is free is a plausible number, and no more than a limit on the
    process leaves.
    """
    assert 10**6 < free_memory() < 10**15
    code = """import resource
from specopt.models.memory import free_memory
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
print(free_memory())"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert 2**28 < float(done.stdout) < 2**30
