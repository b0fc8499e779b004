"""What problems have in common: identity, header, tolerance and gap."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from helpers.instances import small_instances
from hypothesis import example, given
from hypothesis import strategies as st

from specopt import (
    DraftAllocationPlan,
    DraftAllocationProblem,
    FairGoodputProblem,
    InvalidInput,
    Problem,
    PromptChunkingPlan,
    PromptChunkingProblem,
)
from specopt.kinds import KINDS
from specopt.models.problem import (
    LONG_COLUMN,
    ROUNDING,
    canonical_json,
    exceeds,
    problem_type,
    strip_header,
)

numbers = st.floats(allow_nan=False, allow_infinity=False)


def plain(data: dict[str, Any]) -> bytes:
    """The canonical form as the standard library writes it."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


@given(
    st.dictionaries(
        st.text(), st.one_of(st.text(), numbers, st.integers(), st.lists(numbers, max_size=5))
    )
)
def test_canonical_json(data: dict[str, Any]) -> None:
    """Tests that the text is that of the standard library."""
    assert canonical_json(data) == plain(data)


FINE = [0.0, -1.5, 1e-4, 9.9e14, 3]
"""Numbers that are written without an exponent."""


@given(
    st.lists(
        st.one_of(numbers, st.floats(1e-5, 1e17), st.integers(-9, 9).map(float)),
        min_size=1,
        max_size=5,
    )
)
@example([*FINE, float(np.nextafter(1e-4, 0))])
@example([*FINE, float(np.nextafter(1e15, 0))])
@example([*FINE, 1e15])
@example([*FINE, -1e16])
@example([*FINE, -0.0, 5e-324])
@example([*FINE, 2**70])
@example([*FINE, True])
@example([[1, 2], [3, 4]])
@example([[1e-7], [2, 3]])
@example([[1e-7, 2], ["a", "b"]])
@example([{"b": 1e-7, "a": 2}])
@example(["ä"])
@example(np.random.default_rng(1).integers(-(2**62), 2**62, 200).tolist())
@example((10 ** np.random.default_rng(1).uniform(-4, 15, 200)).tolist())
def test_canonical_json_of_long_columns(values: list[Any]) -> None:
    """Tests that long columns give the same text, with exponents and without, of numbers and of
    what else there is.
    """
    data = {"b": values * LONG_COLUMN, "a": values}
    assert canonical_json(data) == plain(data)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_the_tolerance_is_relative(unit: float) -> None:
    """Tests that a limit may be missed by 1e-9 of it, in every unit, and that nothing is
    nothing.
    """
    assert not exceeds(unit, unit)
    assert not exceeds(unit * (1 + 0.9e-9), unit)
    assert exceeds(unit * (1 + 1.1e-9), unit)
    assert exceeds(unit, 0.0) and not exceeds(0.0, 0.0) and not exceeds(-unit, 0.0)
    assert exceeds(-unit * (1 - 1.1e-9), -unit) and not exceeds(-unit * (1 - 0.9e-9), -unit)


@pytest.mark.parametrize(
    ("objective", "bound", "size", "distance"),
    [
        (4.0, 5.0, 0.0, 0.25),
        (4.0, 3.0, 0.0, 0.25),
        (-4.0, -5.0, 0.0, 0.25),
        (4.0, 5.0, 100.0, 0.25),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 2.0, 8.0, 0.25),
        (0.0, 2.0, -8.0, 0.25),
        (0.0, 1e-300, 0.0, math.inf),
        (4e-300, 5e-300, 0.0, 0.25),
    ],
)
def test_gaps(objective: float, bound: float, size: float, distance: float) -> None:
    """Tests that a gap is relative to the objective, or to the size of its terms where it is 0."""
    problem = DraftAllocationProblem(
        acceptance_rates=np.array([0.5]), weights=np.array([1.0]), budget_tokens=1
    )
    assert problem.gap(objective, bound, size) == pytest.approx(distance, rel=1e-15)
    assert DraftAllocationProblem.distance(objective, bound, (), size) == problem.gap(
        objective, bound, size
    )


@pytest.mark.parametrize("kind", [DraftAllocationProblem, PromptChunkingProblem])
@pytest.mark.parametrize("bound", [3.0, -3.0, 1e300, 1e-300, 0.0, math.inf, -math.inf])
def test_a_bound_is_widened_away_from_the_plans(kind: type[Problem], bound: float) -> None:
    """Tests that rounding is paid for on the side that leaves more room: relative, whatever a
    bound's sign and size.
    """
    found = kind.widened(bound)
    if not math.isfinite(bound) or bound == 0.0:
        assert found == bound
        return
    assert (found > bound) == (kind.sense == "maximize") and found != bound
    assert abs(found - bound) / abs(bound) == pytest.approx(ROUNDING, rel=1e-4)


@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0, 2.0, 30.0])
def test_a_bound_on_utility_is_widened_by_what_it_is_worth(fairness: float) -> None:
    """Tests that the certainty equivalent of a widened bound is larger by just so much, also where
    utility is 0.
    """
    problem = FairGoodputProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": "fair-goodput",
            "acceptance_rates": [0.5, 0.25],
            "budget_tokens": 4,
        }
        | {"fairness": fairness, "weights": [1.0, 3.0]}
    )
    for rates in ([1.0, 1.0], [1.5, 1.25]):
        bound = problem.utility(np.array(rates))
        before, after = (
            problem.worth(value, problem.scale)
            for value in (bound, problem.widened(bound, problem.scale))
        )
        assert after / before - 1.0 == pytest.approx(ROUNDING, rel=1e-3)


def test_equality() -> None:
    """Tests that problems and plans are equal if they are of one kind and all their fields are."""
    problem = DraftAllocationProblem(
        acceptance_rates=np.array([0.5]), weights=np.array([1.0]), budget_tokens=1
    )
    same, other = (
        DraftAllocationProblem.from_dict(problem.to_dict() | {"budget_tokens": n}) for n in (1, 2)
    )
    assert problem == same and hash(problem) == hash(same) == hash(problem.sha256)
    assert problem != other and hash(problem) != hash(other)
    assert problem != 3 and problem != problem.to_dict()
    plan = DraftAllocationPlan(draft_tokens=np.array([1]))
    assert plan == DraftAllocationPlan.from_dict({"draft_tokens": [1]})
    assert plan != DraftAllocationPlan.from_dict({"draft_tokens": [2]})
    assert plan != plan.to_dict() and plan != PromptChunkingPlan(chunks=np.array([1]))
    with pytest.raises(InvalidInput, match=r"^plan\.draft_tokens\[0\]: expected int >= 0, got -1$"):
        DraftAllocationPlan.from_dict({"draft_tokens": [-1]})


def test_headers() -> None:
    """Tests that format and kind are required, checked and taken off, and that anything but an
    object is refused.
    """
    header = {"format": "specopt/1", "kind": "toy"}
    assert strip_header(header | {"a": 1}, "toy") == {"a": 1}
    for data, message in (
        ([1], r"^the top level: expected an object, got \[1\]$"),
        ({"kind": "toy"}, "^format: required field is missing$"),
        ({"format": "specopt/1"}, "^kind: required field is missing$"),
        (header | {"format": 2}, "^format: expected 'specopt/1', got 2$"),
        (header, "^kind: expected 'other', got 'toy'$"),
    ):
        with pytest.raises(InvalidInput, match=message):
            strip_header(data, "other")
    for kind in ("no-such-kind", 3, ["draft-control"]):
        with pytest.raises(
            InvalidInput,
            match=r"^kind: expected one of .*, draft-allocation, draft-control, .*, got ",
        ):
            problem_type(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_plans_of_other_kinds_are_refused(kind: Any) -> None:
    """Tests that the judge of every kind refuses a plan of another kind and an object that is no
    plan.
    """
    problem = next(iter(small_instances(kind.name).values()))
    other: Any = PromptChunkingPlan(chunks=np.array([1]))
    if kind.name == PromptChunkingProblem.kind:
        other = DraftAllocationPlan(draft_tokens=np.array([1]))
    for judged in (problem.evaluate, problem.violations):
        for plan in (other, [1, 2]):
            with pytest.raises(InvalidInput, match=f"expected a {problem.plan_type.__name__}, got"):
                judged(plan)
