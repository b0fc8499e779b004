"""Methods find the same objectives and bounds as before, in as many nodes, labels or rounds.

An exact method whose pruning is broken still returns the optimum, and a heuristic whose rounding is
broken still returns a plan. `tests/data/work.json` holds the results and the counters of every
method on small problems of every family. A family or a method that is not in the record yet is not
compared. Record an intended change with ``.venv/bin/python -P tests/solvers/test_same_work.py``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import helpers.vectors  # noqa: F401, before numpy
import pytest

from specopt import Problem, Unsupported, generate, methods, solve
from specopt.api.generate import FAMILIES
from specopt.solvers.method import Method

RECORD = Path(__file__).parents[1] / "data" / "work.json"

VALUE_TOLERANCE = 1e-7
"""Relative tolerance of objectives and bounds: libraries and processors round differently."""

COUNT_TOLERANCE, COUNT_SLACK = 0.1, 2
"""Relative and absolute tolerance of counters."""

SMALL: dict[str, dict[str, Any]] = {
    "tasks": {"tasks": 5, "max_output": 16},
    "requests": {"requests": 12},
    "states": {"states": 4},
    "prompt_tokens": {"prompt_tokens": 40},
    "clients": {"clients": 4, "budget": 24},
    "number_of_clients": {
        "number_of_clients": 6,
        "classes": 2,
        "verifiers": 2,
        "drafters": 2,
        "units": 2,
    },
}
"""Parameters of a family's small problem, by the parameter that sets its size."""

MIDDLE: dict[str, dict[str, Any]] = {
    "serving-latency/paper-1": {"tasks": 12, "max_output": 64},
    "serving-latency/known-lengths": {"tasks": 12, "max_output": 64},
    "continuous-serving/arrivals": {"tasks": 12, "max_output": 64},
    "verification-batch/correlated": {"requests": 40},
    "placement/many-classes": {"classes": 3, "number_of_clients": 40, "units": 4, "max_draft": 6},
    "placement/edge-cloud": {"number_of_clients": 80},
}
"""Parameters for families whose default problem takes long."""

GAPS = {"placement": 0.05}
"""Relative gap to stop at, for kinds whose proofs take long."""


def problem_of(family: str, small: bool) -> Problem | None:
    """Return the default problem of a family, or its small one if the family has a size."""
    known = FAMILIES[family].defaults
    if not small:
        return generate(family, seed=1, **MIDDLE.get(family, {}))
    for parameters in (SMALL[name] for name in SMALL if name in known):
        return generate(
            family, seed=2, **{name: value for name, value in parameters.items() if name in known}
        )
    return None


def work_of(method: Method, problem: Problem) -> list[Any] | None:
    """Return objective, bound and counters of a method; None if it refuses the problem."""
    try:
        result = solve(problem, method, gap=GAPS.get(problem.kind, 0.0), time_limit=60.0)
    except Unsupported:
        return None
    assert result.termination != "time_limit", "a record must not depend on the machine"
    return [
        result.objective,
        result.bound,
        {name: n for name, n in result.stats.items() if type(n) is int},
    ]


def found(family: str, small: bool) -> dict[str, list[Any]]:
    """Return the work of every method but `auto`, whose members are asked themselves."""
    problem = problem_of(family, small)
    asked = (
        {} if problem is None else {one.name: work_of(one(), problem) for one in methods(problem)}
    )
    return {name: work for name, work in asked.items() if work is not None and name != "auto"}


def close(value: float | None, recorded: float | None) -> bool:
    """Return whether two values agree within rounding."""
    if value is None or recorded is None:
        return value is recorded
    return math.isclose(value, recorded, rel_tol=VALUE_TOLERANCE, abs_tol=VALUE_TOLERANCE)


def same_counts(now: dict[str, int], before: dict[str, int]) -> bool:
    """Return whether the recorded counters are still there, with nearly the same values."""
    return all(
        name in now and abs(now[name] - n) <= COUNT_TOLERANCE * n + COUNT_SLACK
        for name, n in before.items()
    )


def differences(name: str, now: list[Any], before: list[Any]) -> list[str]:
    """Return a line for each of objective, bound and counters that differs from the record."""
    same = close(now[0], before[0]), close(now[1], before[1]), same_counts(now[2], before[2])
    parts = zip(("objective", "bound", "counters"), before, now, same, strict=True)
    return [
        f"{name}: {part} was {old}, is {new}" for part, old, new, is_same in parts if not is_same
    ]


@pytest.mark.parametrize(
    "small", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["small", "middle"]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_work_is_that_of_the_record(family: str, small: bool) -> None:
    """Tests that every recorded method still finds the recorded objective and bound, in as much
    work.
    """
    before, now = json.loads(RECORD.read_text()).get(f"{family}, {small}", {}), found(family, small)
    assert [name for name in before if name not in now] == [], "recorded methods are gone"
    changed = [line for name, work in before.items() for line in differences(name, now[name], work)]
    assert changed == [], (
        f"{family}, small={small}; record intended changes with `python -P {Path(__file__).name}`"
    )


if __name__ == "__main__":
    lines = []
    for family in FAMILIES:
        for small in (True, False):
            if answers := found(family, small):
                lines.append(f"{json.dumps(f'{family}, {small}')}: {json.dumps(answers)}")
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
