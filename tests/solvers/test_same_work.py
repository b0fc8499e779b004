"""Methods find the same plans and bounds as ever, in no more nodes, labels, or rounds.

An exact method whose pruning is broken still returns the optimum, and a heuristic whose rounding is broken still
returns a plan. `tests/data/work.json` holds what each method found, and what it counted, in problems of every family.
A change that is meant is recorded with ``.venv/bin/python -P tests/solvers/test_same_work.py``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from specopt import Problem, Unsupported, generate, methods, solve
from specopt.api.generate import FAMILIES
from specopt.solvers.method import Method

RECORD = Path(__file__).parents[1] / "data" / "work.json"
CLOSE, MORE, FEW = 1e-7, 1.1, 2
"""Libraries and processors round in their own ways: how far values may be off, and how much more work is none."""

SMALL: dict[str, dict[str, Any]] = {
    "tasks": {"tasks": 5, "max_output": 16}, "requests": {"requests": 12}, "states": {"states": 4},
    "prompt_tokens": {"prompt_tokens": 40}, "clients": {"clients": 4, "budget": 24},
    "number_of_clients": {"number_of_clients": 6, "classes": 2, "verifiers": 2, "drafters": 2, "units": 2},
}  # fmt: skip
"""Parameters of a family's small problem, by the one that says how many there are."""

MIDDLE: dict[str, dict[str, Any]] = {
    "serving-latency/paper-1": {"tasks": 12, "max_output": 64},
    "serving-latency/known-lengths": {"tasks": 12, "max_output": 64},
    "serving-latency/arrivals": {"tasks": 12, "max_output": 64},
    "verification-batch/correlated": {"requests": 40},
    "placement/many-classes": {"classes": 3, "number_of_clients": 40, "units": 4, "max_draft": 6},
    "placement/edge-cloud": {"number_of_clients": 80},
}
"""Parameters where the family's own make a problem that takes long."""

GAPS = {"placement": 0.05}
"""Where a proof takes long."""


def problem_of(family: str, small: bool) -> Problem | None:
    """Return the problem of a family, or its small one, if it has one."""
    known = FAMILIES[family].defaults
    for chosen in (SMALL[name] for name in SMALL if small and name in known):
        return generate(family, seed=2, **{name: value for name, value in chosen.items() if name in known})
    return None if small else generate(family, seed=1, **MIDDLE.get(family, {}))


def found_by(method: Method, problem: Problem) -> list[Any] | None:
    """Return objective and bound, and what the method counts on the way; None if it refuses the problem."""
    try:
        result = solve(problem, method, gap=GAPS.get(problem.kind, 0.0), time_limit=60.0)
    except Unsupported:
        return None
    assert result.termination != "time_limit", "what is recorded must not depend on the machine"
    return [result.objective, result.bound, {one: n for one, n in result.stats.items() if type(n) is int}]


def found(family: str, small: bool) -> dict[str, Any]:
    """Return what every method finds; `auto` runs methods that are asked themselves."""
    problem = problem_of(family, small)
    asked = {} if problem is None else {one.name: found_by(one(), problem) for one in methods(problem)}
    return {name: one for name, one in asked.items() if one is not None and name != "auto"}


def close(value: float | None, recorded: float | None) -> bool:
    """Say whether two values are the same to rounding."""
    if value is None or recorded is None:
        return value is recorded
    return math.isclose(value, recorded, rel_tol=CLOSE, abs_tol=CLOSE)


@pytest.mark.parametrize("small", [True, False], ids=["small", "middle"])
@pytest.mark.parametrize("family", FAMILIES)
def test_work_is_that_of_before(family: str, small: bool) -> None:
    """Tests that every method finds what was recorded, with no more work."""
    recorded = json.loads(RECORD.read_text())
    assert {name.partition(",")[0] for name in recorded} == set(FAMILIES)
    before, now = recorded.get(f"{family}, {small}", {}), found(family, small)
    assert now.keys() == before.keys()
    for name, (objective, bound, work) in now.items():
        was, had, took = before[name]
        assert close(objective, was), name
        assert close(bound, had), name
        assert work.keys() == took.keys(), name
        assert {one: n for one, n in work.items() if n > MORE * took[one] + FEW} == {}, name


if __name__ == "__main__":
    lines = []
    for family in FAMILIES:
        for small in (True, False):
            if answers := found(family, small):
                lines.append(f"{json.dumps(f'{family}, {small}')}: {json.dumps(answers)}")
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
