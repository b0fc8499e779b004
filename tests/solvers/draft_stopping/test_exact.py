"""Exact methods of draft stopping against a linear program and against every automaton, and the
rules they beat.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from specopt import DraftStoppingPlan, DraftStoppingProblem, Status, Unsupported, methods
from specopt.kinds.draft_stopping.strategies import RATES
from specopt.kinds.draft_stopping.strategies import problems as draft_stoppings
from specopt.models.draft_stopping.problem import STOP, AcceptanceRate, RoundClass
from specopt.models.drafting import BinaryPredictor, first_flag_round

RULES = ("no-drafts", "fixed-window", "first-rejection", "confidence-threshold", "optimal-stopping")


def by_linear_program(problem: DraftStoppingProblem) -> float:
    """The optimum by the shares of all histories at which a token is drafted, in Charnes and
    Cooper's form.

    Variables: for every history of scores the share y_h <= y_(its parent) of visits on which a
    token is drafted, times the scale s of the ratio; maximise s + sum gain_h y_h subject to round s
    + draft sum mass_h y_h = 1.
    """
    scores, most = problem.scores, problem.max_draft_tokens
    gains: list[float] = []
    masses: list[float] = []
    parents: list[int] = []
    states = [(problem.probabilities, 0.0, -1)]
    for position in range(most):
        later = []
        for alive, rejected, parent in states:
            survives = alive * problem.acceptance_rates[:, position]
            fails = float((alive - survives).sum())
            me = len(gains)
            gains.append(float(survives.sum()))
            masses.append(float(alive.sum()) + rejected)
            parents.append(parent)
            for score in range(scores.bins):
                stays = survives * scores.accepted[score]
                later.append(
                    (
                        stays,
                        fails * scores.first_rejection[score] + rejected * scores.after[score],
                        me,
                    )
                )
        states = later
    count = len(gains)
    above = np.zeros((count, count + 1))
    for one, parent in enumerate(parents):
        above[one, one] = 1.0
        above[one, parent if parent >= 0 else count] = -1.0
    cost: Any = problem.to_dict()["round_seconds"]
    costs = cost if isinstance(cost, list) else [cost] * (most + 1)
    adds = np.repeat(np.diff(costs), [scores.bins**t for t in range(most)])
    equal = np.append((problem.draft_seconds_per_token + adds) * np.array(masses), costs[0])
    exactly = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        -np.append(gains, 1.0),
        A_ub=above,
        b_ub=np.zeros(count),
        A_eq=equal[None, :],
        b_eq=[1.0],
        method="highs",
        options=exactly,
    )
    assert found.success
    return float(-found.fun)


def all_plans(tokens: int, bins: int) -> list[tuple[Any, ...] | None]:
    """Every policy as a tree: None stops, a tuple drafts and says what follows each score."""
    if tokens == 0:
        return [None]
    return [None, *itertools.product(all_plans(tokens - 1, bins), repeat=bins)]


def as_plan(tree: tuple[Any, ...] | None) -> DraftStoppingPlan:
    """Number the nodes of a tree."""
    rows: list[list[int]] = []

    def number(node: tuple[Any, ...] | None) -> int:
        if node is None:
            return STOP
        mine = len(rows)
        rows.append([])
        rows[mine] = [number(child) for child in node]
        return mine

    return DraftStoppingPlan.from_dict({"start": number(tree), "next": rows})


@settings(max_examples=60)
@given(problem=draft_stoppings())
def test_three_routes_to_the_optimum(problem: DraftStoppingProblem) -> None:
    """Tests that the tree of histories, the search over beliefs and a linear program find one
    optimum.
    """
    tree, belief = solve(problem, "history-tree"), solve(problem, "belief")
    assert tree.status is belief.status is Status.OPTIMAL
    assert belief.objective == pytest.approx(tree.objective, rel=2e-9)
    assert tree.objective == pytest.approx(by_linear_program(problem), rel=1e-7)


@settings(max_examples=15)
@given(problem=draft_stoppings(max_tokens=2))
def test_no_automaton_is_better(problem: DraftStoppingProblem) -> None:
    """Tests that none of all policies, each judged, beats the exact one."""
    trees = all_plans(problem.max_draft_tokens, problem.scores.bins)
    best = max(problem.evaluate(as_plan(tree)).objective for tree in trees)
    assert solve(problem, "history-tree").objective == pytest.approx(best, rel=1e-12)


@settings(max_examples=30)
@given(problem=draft_stoppings())
def test_rules_lie_between(problem: DraftStoppingProblem) -> None:
    """Tests that no rule beats the optimum, no bound cuts it off, and thresholds are no slower than
    fixed windows.
    """
    best = solve(problem, "history-tree").objective
    found = {name: solve(problem, name) for name in RULES}
    for result in found.values():
        assert result.objective <= best * (1 + 1e-12) and best <= result.bound * (1 + 1e-12)
    assert found["confidence-threshold"].objective >= found["fixed-window"].objective * (1 - 1e-12)


@settings(max_examples=20)
@given(problem=draft_stoppings(), rate=RATES)
def test_one_rate_is_solved_by_optimal_stopping(problem: DraftStoppingProblem, rate: float) -> None:
    """Tests that optimal stopping at the mean rate is optimal where all rounds and positions have
    one rate.
    """
    data = problem.to_dict()
    data["rounds"] = [{"probability": 1.0, "acceptance_rate": rate}]
    alone = DraftStoppingProblem.from_dict(data)
    best = solve(alone, "history-tree").objective
    assert solve(alone, "optimal-stopping").objective == pytest.approx(best, rel=1e-12)


@settings(max_examples=5)
@given(seed=st.integers(0, 100))
def test_a_search_cut_short_is_certified(seed: int) -> None:
    """Tests that after a few trials plan and bound enclose the optimum of the whole tree."""
    problem = generate("draft-stopping/random", bins=3, max_draft=9, seed=seed)
    best = solve(problem, "history-tree").objective
    calls = 0

    def stop(progress: Any) -> bool:
        nonlocal calls
        calls += 1
        return calls > 6

    found = solve(problem, "belief", callback=stop)
    assert found.objective <= best * (1 + 1e-12) and best <= found.bound * (1 + 1e-12)


def test_few_pieces_are_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that plan and bound enclose the optimum, closely, where so few pieces are kept that
    what they lose counts.

    Where all rounds have one rate, optimal stopping finds the optimum with all pieces.
    """
    monkeypatch.setattr("specopt.solvers.drafting.pieces.EXACT_PIECES", 6)
    monkeypatch.setattr("specopt.solvers.drafting.pieces.MAX_ENTRIES", 0)
    data = generate("draft-stopping/random", bins=3, max_draft=9, seed=1).to_dict()
    problem = DraftStoppingProblem.from_dict(
        data | {"rounds": [{"probability": 1.0, "acceptance_rate": 0.9}]}
    )
    best, found = solve(problem, "history-tree").objective, solve(problem, "optimal-stopping")
    assert 0.98 * best <= found.objective <= best * (1 + 1e-12) and best <= found.bound * (
        1 + 1e-12
    )


def test_a_belief_over_classes_pays() -> None:
    """Tests that the best policy for easy and hard rounds is more than 1 % faster than every
    rule.
    """
    problem = generate("draft-stopping/mixed")
    best = solve(problem).objective
    assert best == pytest.approx(16.1891, abs=1e-4)
    assert max(solve(problem, name).objective for name in RULES) < 0.99 * best


@pytest.mark.parametrize("alpha", np.linspace(0.55, 0.85, 7))
@pytest.mark.parametrize("overhead", [0.03, 0.06, 0.1, 0.2, 0.4])
def test_the_rule_of_paper_2_is_slower_than_a_window(alpha: float, overhead: float) -> None:
    """Tests that at Table 4's operating point stopping at the first flag loses to the best window;
    a belief gains.
    """
    table_4 = BinaryPredictor(false_accept=0.4250, false_reject=1.0 - 0.8011)
    problem = DraftStoppingProblem(
        max_draft_tokens=8,
        draft_seconds_per_token=0.02,
        round_seconds=overhead,
        scores=table_4.scores,
        rounds=(RoundClass(probability=1.0, acceptance_rate=AcceptanceRate(np.array(alpha))),),
    )
    window, best, exact = (
        solve(problem, method).objective for method in ("fixed-window", "belief", "history-tree")
    )
    assert best == pytest.approx(exact, rel=1e-9)
    mean = first_flag_round(alpha, 8, table_4)
    assert 0.65 < (1.0 + mean.accepted) / (overhead + 0.02 * mean.drafted) / window < 0.95
    assert 1.0 <= best / window < 1.08


def test_more_histories_than_a_number_holds() -> None:
    """Tests that a problem with more histories than floating point counts is refused by size, by
    this method alone.
    """
    problem = generate("draft-stopping/random", max_draft=1000, bins=1000, seed=1)
    assert "history-tree" not in {method.name for method in methods(problem)}
    with pytest.raises(Unsupported, match="more than 1,000,000"):
        solve(problem, "history-tree")
