"""Limits of the searches: each is in the table of docs/rounding.md, and no certificate ignores one.

A constant of the solvers either limits a search, and is in that table, or it is listed here with
the reason why it cannot cut off a plan.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from helpers.instances import INSTANCES
from helpers.untyped import generate, solve

from specopt import ContinuousServingProblem, Problem, ServingLatencyProblem, Status, methods
from specopt.solvers.auto import Auto
from specopt.solvers.verification_batch.threshold import Threshold

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "rounding.md").read_text().partition("## Limits of a search")[2]
ROWS = re.findall(r"^\| `([\w.]+)` \| `([\w/]+)\.py` \|", TABLE, re.MULTILINE)

SERVING = "serving_latency/"
PIPELINED = {
    "LARGEST_APART": 1,
    "_ROUNDS": 1,
    "_PATIENCE": 1,
    "_FINE_RANGES": 1,
    "_PATH": 1,
    "_CERTIFIED": 1,
    "_LONGEST_PATH": 1,
    "_FEWEST_CELLS": 1,
    "_WIDE": 0,
    "_FIRST_POSITIONS": 1,
    "_MASKS": 1,
    "_CHEAP": 1,
    "_PLANS": 0,
}
TINY: dict[tuple[str, str], Any] = {
    **{(SERVING + "pipelined", name): value for name, value in PIPELINED.items()},
    (SERVING + "blocks", "RANGES"): 1,
    **{(SERVING + "positions", name): 1 for name in ("_WEIGHTS", "_KEPT", "_ROUNDS")},
    (SERVING + "bound", "_ENTRIES"): 1,
    (SERVING + "column_bound", "RANGES"): 2,
    **{(SERVING + "column_bound", name): 2 for name in ("_CLASSES", "_LARGEST_EXACT", "_NODES")},
    (SERVING + "column_bound", "_CLASSES_OF_MANY"): 2,
    (SERVING + "column_bound", "_STALE"): 0,
    **{("serving_prices", name): 1 for name in ("MORE_RUNS", "PARTS")},
    ("serving_prices", "MAX_RUNS"): 4,
    ("serving_prices", "GROUPS"): 10,
    ("serving_prices", "KNOTS"): 3,
    **{(SERVING + "length_aware", name): 1 for name in ("_MANY", "_MAX_ORDERED", "_MAX_RANGES")},
    **{(SERVING + "length_aware", name): 0 for name in ("_DEAR_BOUND", "_CHEAP_BOUND")},
    **{
        ("continuous_serving/rebatching", name): 1
        for name in ("MAX_ENDS", "MAX_BATCHES", "STATES", "FEW", "MAX_LENGTHS")
    },
    (SERVING + "stand_in", "MAX_TURNS"): 1,
    ("verification_batch/pareto", "MAX_LABELS"): 1,
    ("verification_batch/pareto", "MAX_REQUESTS"): 0,
    ("verification_batch/prepare", "PASSES"): (1, 1),
    ("verification_batch/threshold", "FEW_REQUESTS"): 0,
    ("verification_batch/threshold", "MANY_REQUESTS"): 0,
    ("verification_batch/threshold", "MEETING"): -1,
    ("verification_batch/threshold", "Threshold.few_labels"): 1,
    ("verification_batch/threshold", "Threshold.polished"): 1,
    ("verification_batch/threshold", "Threshold.core"): 1,
    ("draft_control/method", "MAX_ROUNDS"): 1,
    ("drafting/pieces", "EXACT_PIECES"): 2,
    ("drafting/pieces", "MAX_ENTRIES"): 1,
    ("draft_stopping/stopping", "REFINEMENTS"): (0.1,),
    ("draft_stopping/stopping", "MAX_NODES"): 1,
    ("fair_goodput/master", "PATIENCE"): 1,
    ("fair_goodput/master", "WHOLE"): 0,
    ("fair_goodput/column_generation", "SHORT"): 0,
    ("fair_goodput/convex", "FIRST_LINES"): 1,
    ("prompt_chunking/exact", "ENUMERATED"): 0,
    ("prompt_chunking/exact", "STAGES_PLAYED"): 1,
    ("prompt_chunking/deadline", "MAX_GEOMETRIC"): 1,
    ("auto", "WORK_SECONDS"): 1e-9,
}
"""Values at which limits bind on small problems."""

IMPORTED = {
    (SERVING + "blocks", "RANGES"): "serving_latency.pipelined",
    ("continuous_serving/rebatching", "FEW"): "continuous_serving.rebatching",
    ("continuous_serving/rebatching", "MAX_LENGTHS"): "continuous_serving.rebatching",
}
"""Modules that import a limit by its name."""

REFUSES = ("max_size", "MAX_STEPS", "MAX_ENTRIES", "MAX_HISTORIES")
"""What refuses a larger problem before anything is solved: the conformance tests compare that with
the conditions.
"""

NO_LIMITS = {
    "cut work into calls, chunks or parts, all of which are done": (
        "_ENTRIES_PER_CALL",
        "_TASKS_PER_CALL",
        "_WORK_PER_CALL",
        "_WORK_PER_TASK",
        "_QUICK",
        "_PARTS",
        "_TRIES_PER_BLOCK",
        "_DRAWS_PER_CALL",
        "_STEPS_PER_CALL",
        "ROUNDS_PER_CALL",
        "_RUNS_PER_CALL",
        "TOKENS_PER_CHECK",
        "ALLOCATIONS_PER_CHECK",
        "SUBSETS_PER_CHECK",
        "_TRIES",
        "WORK",
        "_NODES",
        "_LEAVES",
        "LEAVES",
        "_BRANCHES",
        "FIRST_LABELS",
        "_LARGE",
        "LARGE",
    ),
    "estimate seconds or bytes, or scale a program": (
        "ENTRIES_PER_NODE",
        "_BYTES_PER_ENTRY",
        "_BYTES_PER_COST",
        "BYTES_PER_LINE",
        "BYTES_PER_ROW",
        "UNITS",
        "UNIT",
        "MAX_EXTRA",
        "SNAP",
        "MEMORY_LIMIT",
        "COMPILING_SECONDS",
        "_MANY_BATCHES",
    ),
    "choose the plans to start from": (
        "PARTS",
        "PLAIN_TOKENS",
        "PLAIN",
        "SPACING",
        "TURNS",
        "FEW_TASKS",
        "_FEW",
        "AT_ONCE",
        "_HOPELESS",
        "USUAL_TOKENS",
        "WEIGHT",
    ),
    "names, codes and parts of a model": ("MIN_RATE", "FOUND", "SURE", "MOST", "_LEAST", "_END"),
    "limits of simulators": (
        "MAX_REPLICATIONS",
        "MAX_ITERATIONS",
        "MAX_ROUNDS",
        "MAX_REQUESTS",
        "MAX_RUNS",
        "MAX_DEVICES",
        "MAX_RESPONSES",
        "MAX_EVENTS",
        "MAX_SECONDS",
        "_TREE",
        "FEWEST_ROUNDS",
        "_PROMPT_BINS",
    ),
}
"""Numbers of at least one that limit no search, by reason."""


def small(tasks: int, **changes: Any) -> ServingLatencyProblem:
    """Return a small problem of serving latency."""
    problem = generate("serving-latency/paper-1", tasks=tasks, max_input=40, max_output=12, seed=3)
    assert isinstance(problem, ServingLatencyProblem)
    return dataclasses.replace(problem, max_speculation_length=2, **changes)


@cache
def problems(place: str) -> tuple[Problem, ...]:
    """Return small problems for the limits of a module."""
    folder, _, module = place.partition("/")
    if module in ("column_bound", "length_aware"):
        return (small(5, output_lengths="known"),)
    if place in ("serving_prices", "continuous_serving/rebatching"):
        return (ContinuousServingProblem(**small(3).shared_fields()),)
    if module == "stand_in":
        return tuple(
            p
            for p in INSTANCES["serving-latency"].values()
            if isinstance(p, ServingLatencyProblem) and _takes(p, "stand-in")
        )[:2]
    if folder == "serving_latency":
        return (small(6),)
    if folder == "verification_batch":  # the sweep misses the optimum
        return tuple(
            generate("verification-batch/correlated", requests=12, seed=seed) for seed in (8, 31)
        )
    if folder == "auto":
        return small(6), generate("verification-batch/mixed", requests=12, seed=1)
    kind = "draft_stopping" if folder == "drafting" else folder
    return tuple(INSTANCES[kind.replace("_", "-")].values())[:5]


def _takes(problem: Problem, name: str) -> bool:
    return name in [method.name for method in methods(problem)]


@cache
def optimum(problem_id: int, problem: Any) -> float | None:
    """Return the best objective that any method finds, those that enumerate included."""
    sign = 1.0 if problem.sense == "minimize" else -1.0
    found = [
        solve(problem, method.name).objective
        for method in methods(problem)
        if not issubclass(method, Auto)
    ]
    return min(
        (value for value in found if value is not None),
        key=lambda value: sign * value,
        default=None,
    )


def constants(path: Path) -> Iterator[str]:
    """Yield the numbers of at least one that a module declares in capitals."""
    module = import_module(f"specopt.{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}")
    for name in re.findall(
        r"^(_?[A-Z][A-Z_0-9]*)(?:: [\w\[\], ]+)? = ", path.read_text(), re.MULTILINE
    ):
        value = vars(module).get(name)  # names inside a docstring are no constants
        if isinstance(value, int | float) and value >= 1:
            yield name


def test_the_table_is_complete() -> None:
    """Tests that every number that a solver declares is in the table of limits, or limits no
    search.
    """
    listed = {name for name, _ in ROWS} | {name for names in NO_LIMITS.values() for name in names}
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "solvers").rglob("*.py"))
        if not {"kernels", "placement", "speculation_table"} & set(path.parts)
        and path.name != "__init__.py"
        for name in constants(path)
        if name not in listed
    ]
    assert not missing


@pytest.mark.parametrize(("name", "place"), ROWS, ids=lambda part: part)
def test_a_listed_limit_exists(name: str, place: str) -> None:
    """Tests that the table names no constant that is gone, and that each is set tiny below,
    refuses, or is compiled.
    """
    value: Any = import_module("specopt.solvers." + place.replace("/", "."))
    for part in name.split("."):
        value = getattr(value, part)
    known = (place, name) in TINY or "kernels" in place or place.startswith("placement")
    assert known or name.split(".")[-1] in REFUSES, "a limit without a test"


@pytest.mark.parametrize(("place", "name"), TINY, ids=lambda part: part)
def test_no_certificate_ignores_a_limit(
    place: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a limit that binds leaves no false proof, no bound beyond the optimum and no false
    infeasibility.
    """
    assert (name, place) in ROWS, "a limit that the table lacks"
    best = [optimum(id(problem), problem) for problem in problems(place)]
    module = import_module("specopt.solvers." + place.replace("/", "."))
    if place == SERVING + "pipelined":  # not all plans are rated at once
        monkeypatch.setattr(module, "_PLANS", 0)
    if name.startswith("Threshold."):
        monkeypatch.setattr(Threshold, name.partition(".")[2], TINY[place, name])
    else:
        monkeypatch.setattr(module, name, TINY[place, name])
    if (place, name) in IMPORTED:
        monkeypatch.setattr(f"specopt.solvers.{IMPORTED[place, name]}.{name}", TINY[place, name])
    for problem, reference in zip(problems(place), best, strict=True):
        sign = 1.0 if problem.sense == "minimize" else -1.0
        for method in methods(problem):
            if method.name in ("brute-force", "every-step", "milp", "double-q-learning"):
                continue
            found = solve(problem, method.name)
            if reference is None:
                assert found.plan is None
                continue
            slack = 2.0 * method.tolerance * abs(reference) + 1e-14
            assert found.status is not Status.INFEASIBLE and "refuted" not in found.stats
            if found.bound is not None:
                assert sign * found.bound <= sign * reference + slack
            if found.status is Status.OPTIMAL and found.objective is not None:
                assert problem.gap(found.objective, reference) <= 2.0 * method.tolerance
