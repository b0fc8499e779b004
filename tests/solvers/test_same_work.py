"""Methods find the same plans and bounds as ever, in as many nodes, labels, or rounds.

An exact method whose pruning is broken still returns the optimum, and a heuristic whose rounding is broken still
returns a plan. `tests/data/work.json` holds what each method found, and what it counted, in problems of every family,
`drawn.json` in random problems of every kind: what each says without any time, what it takes and what it refuses, and
`hurried.json` where searches have so little effort that every step of theirs shows in what they find.
A change that is meant is recorded with ``.venv/bin/python -P tests/solvers/test_same_work.py``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import helpers.vectors  # noqa: F401, before numpy
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from specopt import Problem, Unsupported, generate, methods, solve
from specopt.api.generate import FAMILIES
from specopt.kinds import KINDS, kind_of
from specopt.solvers.method import Method
from specopt.testing import strategies

RECORD = Path(__file__).parents[1] / "data" / "work.json"
DRAWN, HURRIED = RECORD.with_name("drawn.json"), RECORD.with_name("hurried.json")
CLOSE, MORE, FEW = 1e-7, 0.1, 2
"""Libraries and processors round in their own ways: how far values may be off, and how much other work is none."""

DRAWS, SKIPPED, TOGETHER = 44, 20, 6
"""So many problems of a kind are drawn, the first ones are too simple; a test has a few."""

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

LITTLE: dict[str, dict[str, Any]] = {
    "length-aware": {"moves": 60, "rounds": 3}, "stand-in": {"moves": 20}, "deadline": {"effort": 20},
    "double-q-learning": {"steps": 2000}, "random": {"rounds": 5}, "milp": {}, "brute-force": {}, "auto": {},
}  # fmt: skip
"""Options of a search that give it little effort; what has none is left out here."""

SEEDS = range(3, 11)

GAPS = {"placement": 0.05}
"""Where a proof takes long."""


def problem_of(family: str, small: bool, seed: int) -> Problem | None:
    """Return the problem of a family, or its small one, if it has one."""
    known = FAMILIES[family].defaults
    for chosen in (SMALL[name] for name in SMALL if small and name in known):
        return generate(family, seed=seed, **{name: value for name, value in chosen.items() if name in known})
    return None if small else generate(family, seed=seed, **MIDDLE.get(family, {}))


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
    problem = problem_of(family, small, 2 if small else 1)
    asked = {} if problem is None else {one.name: found_by(one(), problem) for one in methods(problem)}
    return {name: one for name, one in asked.items() if one is not None and name != "auto"}


def seeds_of(family: str) -> range:
    """Return the seeds whose problems are asked for: fewer where proofs take long."""
    return SEEDS[: 4 if family.startswith("placement/") else None]


def hurried(family: str, seed: int) -> dict[str, Any]:
    """Return what methods find in a problem of a family with little effort; those of odd seeds are small."""
    small = seed % 2 == 1 or family.startswith("placement/")
    problem = problem_of(family, small, seed) or problem_of(family, False, seed)
    assert problem is not None
    asked = [of(**LITTLE.get(of.name, {})) for of in methods(problem) if of.name not in LITTLE or LITTLE[of.name]]
    found = {one.name: found_by(one, problem) for one in asked}
    return {name: one for name, one in found.items() if one is not None}


def close(value: float | None, recorded: float | None) -> bool:
    """Say whether two values are the same to rounding."""
    if value is None or recorded is None:
        return value is recorded
    return math.isclose(value, recorded, rel_tol=CLOSE, abs_tol=CLOSE)


def same_work(now: dict[str, int], before: dict[str, int]) -> bool:
    """Say whether counts are the same but for a few."""
    near = (abs(n - before.get(name, n)) <= MORE * before.get(name, n) + FEW for name, n in now.items())
    return now.keys() == before.keys() and all(near)


def about(problem: Problem, method: Method) -> list[Any]:
    """Return what a method needs and is, why it refuses, and what it has without any time."""
    needs: list[Any] = [sum(method.bytes_needed(problem).values()), sum(method.seconds_needed(problem).values())]
    needs += [method.exact, method.may_fail, method.max_size, method.supports_warm_start]
    reason = method.refusal(problem)
    if reason is not None:
        return [needs, len(reason)]
    quick = solve(problem, method, time_limit=0.0)
    return [needs, quick.termination, quick.objective, quick.bound, [str(one) for one in quick.conflict]]


def drawn(kind: str) -> list[Problem]:
    """Return random problems of a kind."""
    found: list[Problem] = []

    @seed(5)
    @settings(
        max_examples=DRAWS, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategies.problems(kind))
    def draw(problem: Problem) -> None:
        found.append(problem)

    draw()
    return found[SKIPPED:]


def differences(name: str, now: Any, before: Any) -> list[str]:
    """Return where what is found is not what was recorded."""
    if isinstance(before, list) and isinstance(now, list) and len(now) == len(before):
        return [one for pair in zip(now, before, strict=True) for one in differences(name, *pair)]
    if isinstance(before, dict) and isinstance(now, dict):
        return [] if same_work(now, before) else [f"{name}: {now}, {before} before"]
    if isinstance(before, float) and isinstance(now, float | int):
        return [] if close(now, before) else [f"{name}: {now!r}, {before!r} before"]
    return [] if now == before else [f"{name}: {now!r}, {before!r} before"]


def answers_of(problem: Problem) -> dict[str, Any]:
    """Return what all methods but `auto` say of a problem."""
    asked = [of() for of in methods(type(problem)) if of.name != "auto"]
    return {one.name: [found_by(one, problem), about(problem, one)] for one in asked}


@pytest.mark.parametrize("first", range(0, DRAWS - SKIPPED, TOGETHER))
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_answers_are_those_of_before(kind: str, first: int) -> None:
    """Tests that every method answers to random problems what was recorded, in as much work."""
    recorded = json.loads(DRAWN.read_text())[kind]
    assert len(recorded) == DRAWS - SKIPPED
    for data, before in recorded[first : first + TOGETHER]:
        now = json.loads(json.dumps(answers_of(kind_of(kind).problem.from_dict(data))))
        assert now.keys() == before.keys()
        assert [one for name in now for one in differences(name, now[name], before[name])] == [], data


@pytest.mark.parametrize("small", [True, False], ids=["small", "middle"])
@pytest.mark.parametrize("family", FAMILIES)
def test_work_is_that_of_before(family: str, small: bool) -> None:
    """Tests that every method finds what was recorded, in as much work."""
    recorded = json.loads(RECORD.read_text())
    assert {name.partition(",")[0] for name in recorded} == set(FAMILIES)
    before, now = recorded.get(f"{family}, {small}", {}), found(family, small)
    assert now.keys() == before.keys()
    assert [one for name in now for one in differences(name, now[name], before[name])] == []


@pytest.mark.parametrize("first", SEEDS[:2])
@pytest.mark.parametrize("family", FAMILIES)
def test_little_effort_finds_what_it_found_before(family: str, first: int) -> None:
    """Tests that methods find what was recorded in several problems of a family, searches with little effort."""
    recorded = json.loads(HURRIED.read_text())[family]
    assert recorded.keys() == {str(one) for one in seeds_of(family)}
    for one in seeds_of(family)[first - SEEDS[0] :: 2]:
        now, before = hurried(family, one), recorded[str(one)]
        assert now.keys() == before.keys()
        assert [line for name in now for line in differences(name, now[name], before[name])] == [], one


if __name__ == "__main__":
    lines = []
    for family in FAMILIES:
        for small in (True, False):
            if answers := found(family, small):
                lines.append(f"{json.dumps(f'{family}, {small}')}: {json.dumps(answers)}")
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    kinds = []
    for kind in KINDS:
        rows = [json.dumps([problem.to_dict(), answers_of(problem)]) for problem in drawn(kind.name)]
        kinds.append(f"{json.dumps(kind.name)}: [\n" + ",\n".join(rows) + "\n]")
    DRAWN.write_text("{\n" + ",\n".join(kinds) + "\n}\n")
    rows = [
        f"{json.dumps(name)}: {json.dumps({one: hurried(name, one) for one in seeds_of(name)})}" for name in FAMILIES
    ]
    HURRIED.write_text("{\n" + ",\n".join(rows) + "\n}\n")
