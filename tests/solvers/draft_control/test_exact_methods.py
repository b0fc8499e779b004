"""Every exact method against all policies in rational arithmetic, and against each other on larger
chains.
"""

from __future__ import annotations

import pytest
from helpers.untyped import generate, solve
from hypothesis import given
from oracles import draft_control as naive

from specopt import DraftControlProblem, Status, Unsupported
from specopt.kinds.draft_control.strategies import problems
from specopt.solvers.draft_control import METHODS
from specopt.solvers.method import Method

EXACT = [method for method in METHODS if method.exact]


def accuracy(method: type[Method]) -> float:
    """The relative accuracy of a rate: HiGHS's for the linear program, rounding for the others."""
    return 1e-6 if method.name == "linear-program" else 1e-12


@pytest.mark.parametrize("method", EXACT, ids=lambda method: method.name)
@given(problem=problems() | problems(states=(1, 1), longest=9))
def test_equals_the_optimum(method: type[Method], problem: DraftControlProblem) -> None:
    """Tests that every method finds the largest rate of all policies and proves it, with a bound no
    further away.
    """
    best = float(naive.optimum(problem.to_dict()))
    result = solve(problem, method.name)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=accuracy(method))
    assert result.bound == pytest.approx(problem.widened(best), rel=accuracy(method))


@pytest.mark.parametrize(
    ("seed", "downlink", "stay"), [(0, 4.0, 0.5), (1, 0.05, 0.5), (2, 0.0, 0.99)]
)
def test_equals_policy_iteration(seed: int, downlink: float, stay: float) -> None:
    """Tests that the linear program finds the rate and the price of chains of 15 states, too large
    for the enumeration of policies.
    """
    problem = generate(
        "draft-control/random",
        states=15,
        min_draft=0,
        seed=seed,
        downlink_factor=downlink,
        stay=stay,
    )
    best, result = solve(problem, "policy-iteration"), solve(problem, "linear-program")
    assert result.objective == pytest.approx(best.objective, rel=1e-6)
    assert result.stats["price"] == pytest.approx(best.objective, rel=1e-6)
    assert abs(result.stats["mean_violation"]) <= 1e-6


def test_too_many_policies() -> None:
    """Tests that more policies than memory holds are refused, and that those of transient states do
    not count.
    """
    problem = generate("draft-control/alternating", max_draft=1001)
    with pytest.raises(Unsupported, match="has more than 1,000,000 policies"):
        solve(problem, "brute-force")
    inside = DraftControlProblem.from_dict(
        problem.to_dict() | {"transition": [[0.5, 0.5], [0.0, 1.0]]}
    )
    assert solve(inside, "brute-force").stats["policies"] == 1001


def test_too_large() -> None:
    """Tests that more pairs of state and action than the program takes are refused, with a method
    that can.
    """
    problem = generate("draft-control/random", states=20, max_draft=9999)
    with pytest.raises(
        Unsupported,
        match="has 999,900 pairs of state and action, but the method accepts at most 100,000",
    ):
        solve(problem, "linear-program")
    assert solve(problem).status is Status.OPTIMAL
