"""Every exact method against all policies in rational arithmetic, and against each other on larger
chains.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from oracles import draft_control as naive

from specopt import DraftControlProblem, Status, generate, solve
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


@pytest.mark.parametrize("method", ["decoupled", "linear-program"])
@pytest.mark.parametrize(
    ("seed", "downlink", "stay"), [(0, 4.0, 0.5), (1, 0.05, 0.5), (2, 0.0, 0.99)]
)
def test_equals_policy_iteration(method: str, seed: int, downlink: float, stay: float) -> None:
    """Tests that chains of 15 states, too large for the enumeration of policies, have one rate and
    one price.
    """
    problem = generate(
        "draft-control/random",
        states=15,
        min_draft=0,
        seed=seed,
        downlink_factor=downlink,
        stay=stay,
    )
    best, result = solve(problem, "policy-iteration"), solve(problem, method)
    digits = 1e-6 if method == "linear-program" else 1e-9
    assert best.objective is not None
    assert result.objective == pytest.approx(best.objective, rel=digits)
    assert result.stats["price"] == pytest.approx(best.objective, rel=digits)
    assert abs(result.stats["mean_violation"]) <= digits


@pytest.mark.parametrize("seed", range(2))
def test_policies_of_fifty_states(seed: int) -> None:
    """Tests that the method with one price per state chooses the actions of policy iteration."""
    problem = generate(
        "draft-control/random", states=50, seed=seed, min_draft=0, downlink_factor=0.1
    )
    assert solve(problem, "decoupled").plan == solve(problem, "policy-iteration").plan
