"""Double Q-learning: how near it comes, what it does with its reward, and the keywords that every
method honours.
"""

from __future__ import annotations

import pytest
from helpers.untyped import generate, solve

from specopt import InvalidInput, Progress, Status, Termination
from specopt.solvers.draft_control.double_q_learning import DoubleQLearning


@pytest.mark.parametrize("regime", ["low", "high"])
def test_near_the_optimum(regime: str) -> None:
    """Tests that the policy learned from half a million iterations has at least 0.98 of the optimal
    rate.
    """
    problem = generate("draft-control/paper-3", regime=regime)
    best = solve(problem)
    found = solve(problem, "double-q-learning")
    assert 0.98 * best.objective <= found.objective <= best.objective
    assert found.bound == pytest.approx(best.objective, rel=1e-9)
    assert found.status is Status.FEASIBLE
    assert found.stats["steps"] == 500_000 and found.stats["least_visits"] > 100


def test_reward_decides() -> None:
    """Tests that N - rho T learns the optimum of the counterexample, and Eq. 13 the myopic policy,
    10 % below.
    """
    problem = generate("draft-control/alternating")
    best, myopic = solve(problem).objective, solve(problem, "myopic").objective
    rate = solve(problem, DoubleQLearning(reward="rate")).objective
    eq_13 = solve(problem, DoubleQLearning(reward="myopic")).objective
    assert rate > 0.99 * best
    assert myopic * 0.97 < eq_13 < 0.93 * best


@pytest.mark.parametrize("ends", [(1.0, 0.0), (0.0, 1.0)])
def test_exploration_is_linear_over_all_steps(ends: tuple[float, float]) -> None:
    """Tests that half of the steps explore, and visit all states and actions alike, from always to
    never and back.
    """
    problem = generate("draft-control/alternating")
    low, high = problem.draft_lengths
    pairs = len(problem.states) * len(problem.resolutions) * (high - low + 1)
    found = solve(problem, DoubleQLearning(steps=40_000, explore_from=ends[0], explore_to=ends[1]))
    assert 0.7 * 20_000 / pairs < found.stats["least_visits"] < 1.2 * 20_000 / pairs


def test_seed_and_steps() -> None:
    """Tests that a seed repeats itself, another differs, and few steps still give a plan."""
    problem = generate("draft-control/paper-3")
    few = DoubleQLearning(steps=30_000)
    plans = [solve(problem, few, seed=seed).plan for seed in (0, 0, 1)]
    assert plans[0].to_dict() == plans[1].to_dict() != plans[2].to_dict()
    assert solve(problem, DoubleQLearning(steps=1)).plan is not None


def test_time_limit_and_callback() -> None:
    """Tests that the limit ends the learning with the best policy so far, and that the callback
    can.
    """
    problem = generate("draft-control/paper-3")
    endless = DoubleQLearning(steps=10_000_000_000)
    solve(problem, DoubleQLearning(steps=1))  # compile
    limited = solve(problem, endless, time_limit=0.3)
    assert limited.termination is Termination.TIME_LIMIT and limited.plan is not None
    seen: list[Progress] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 3

    stopped = solve(problem, endless, callback=stop)
    assert stopped.termination is Termination.INTERRUPTED and stopped.plan is not None


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 0},
        {"reward": "greedy"},
        {"discount": 1.0},
        {"step_power": 0.5},
        {"explore_to": 1.5},
    ],
)
def test_bad_options(options: dict[str, object]) -> None:
    """Tests that options outside their domain are refused."""
    with pytest.raises(InvalidInput, match=next(iter(options))):
        DoubleQLearning(**options)  # type: ignore[arg-type]
