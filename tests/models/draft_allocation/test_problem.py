"""The judge of draft allocation against exact rational arithmetic, and what the problem refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import draft_allocation as naive

from specopt import DraftAllocationPlan, DraftAllocationProblem, InvalidInput
from specopt.kinds.draft_allocation.strategies import problems as draft_allocations

BASE: dict[str, Any] = {
    "format": "specopt/1",
    "kind": "draft-allocation",
    "acceptance_rates": [0.5, 0.0, 0.9],
    "weights": [1.0, 2.0, 0.5],
    "budget_tokens": 5,
}


def problem(**fields: Any) -> DraftAllocationProblem:
    """A problem of three clients, with some fields replaced."""
    return DraftAllocationProblem.from_dict(BASE | fields)


def plan(*drafts: int) -> DraftAllocationPlan:
    """A plan."""
    return DraftAllocationPlan(draft_tokens=np.array(drafts))


@given(draft_allocations(), st.data())
def test_judge_equals_naive(problem: DraftAllocationProblem, data: st.DataObject) -> None:
    """Tests that objective and verdict are the oracle's, feasible or not."""
    count = problem.clients
    drafts = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    evaluation = problem.evaluate(plan(*drafts))
    expected = naive.objective(problem.to_dict(), drafts)
    assert evaluation.objective == pytest.approx(float(expected), rel=1e-13)
    assert sum(evaluation.terms.values()) == pytest.approx(evaluation.objective, rel=1e-13)
    assert (problem.violations(plan(*drafts)) == []) == naive.feasible(problem.to_dict(), drafts)


def test_by_hand() -> None:
    """Tests that Eq. 5 gives 1 + 1/2 + 1/4, twice the server's own token, and half of 1 + 0.9."""
    evaluation = problem().evaluate(plan(2, 0, 1))
    assert evaluation.objective == pytest.approx(1.75 + 2.0 + 0.95, rel=1e-15)
    assert evaluation.terms == pytest.approx(
        {"own_tokens": 3.5, "accepted_draft_tokens": 0.75 + 0.45}
    )


@pytest.mark.parametrize("rate", [0.0, 1e-307, 0.3, 1 - 1e-12, 1 - 2**-53])
def test_no_draft_yields_one_token(rate: float) -> None:
    """Tests that without drafts exactly the server's own token remains, whatever the rate."""
    one = problem(acceptance_rates=[rate], weights=[1.0])
    assert one.evaluate(plan(0)).objective == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("drafts", [1, 1000, 10**9, 10**15])
def test_rates_next_to_1_keep_their_digits(drafts: int) -> None:
    """Tests that 1 - a^(S+1) does not cancel: for tiny 1 - a the goodput is S + 1 - (1 - a) S (S +
    1) / 2 + ...
    """
    miss = 2.0**-53
    one = problem(acceptance_rates=[1 - miss], weights=[1.0], budget_tokens=drafts)
    x = miss * (drafts + 1)
    expected = (drafts + 1) * (1 - x / 2 + x**2 / 6 - x**3 / 24)
    assert one.evaluate(plan(drafts)).objective == pytest.approx(expected, rel=x**4 / 100 + 4e-16)


@pytest.mark.parametrize(
    ("drafts", "message"),
    [
        ((3, 0, 3), "draft_tokens: the sum is 6, but the budget is 5"),
        ((3, 0, 0), r"draft_tokens[0]: expected at most 2, got 3"),
        ((1, 1), "draft_tokens: expected 3 entries, got 2"),
    ],
)
def test_violations(drafts: tuple[int, ...], message: str) -> None:
    """Tests that budget, limits and length are judged, one sentence each."""
    assert message in problem(max_draft_tokens=[2, 9, 9]).violations(plan(*drafts))


def test_wrong_length_has_no_objective() -> None:
    """Tests that a plan for other clients is refused."""
    with pytest.raises(InvalidInput, match="draft_tokens: expected 3 entries, got 1"):
        problem().evaluate(plan(1))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weights": [1.0]}, "weights: expected 3 entries, as in acceptance_rates, got 1"),
        (
            {"weights": [1e308, 1e308, 1e308]},
            "weights: the sum of the weights times the budget must be finite",
        ),
        (
            {"max_draft_tokens": [1, 2]},
            "max_draft_tokens: expected 3 entries, as in acceptance_rates, got 2",
        ),
    ],
)
def test_refusals(fields: dict[str, Any], message: str) -> None:
    """Tests that a field outside its domain is named, with what was expected and what came."""
    with pytest.raises(InvalidInput, match=message):
        problem(**fields)
