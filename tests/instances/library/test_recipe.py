"""Recipes: rounded problems that are the same on every machine."""

from __future__ import annotations

import pytest

from specopt import generate
from specopt.api.library import Recipe, instances_of_kind
from specopt.instances.rounded import rounded
from specopt.kinds import KINDS
from specopt.models.draft_control.problem import DraftControlProblem
from specopt.models.serving_latency.problem import ServingLatencyProblem


def test_numbers_keep_six_digits() -> None:
    """Tests that rounding moves no number by more than half of its sixth digit, and no integer at
    all.
    """
    problem = generate("serving-latency/paper-1", seed=3)
    short = rounded(problem)
    assert isinstance(problem, ServingLatencyProblem) and isinstance(short, ServingLatencyProblem)
    assert short.snr == pytest.approx(problem.snr, rel=5.001e-6)
    assert [float(f"{x:.6g}") for x in problem.snr.tolist()] == short.snr.tolist()
    assert short.input_tokens.tolist() == problem.input_tokens.tolist()
    assert short.name is None and short != problem


def test_transitions_stay_stochastic() -> None:
    """Tests that rows of transitions sum to one exactly in millionths."""
    problem = rounded(generate("draft-control/random", states=40, seed=2))
    assert isinstance(problem, DraftControlProblem)
    rows = problem.transition.rows
    assert rows * 1e6 == pytest.approx((rows * 1e6).round(), abs=1e-6)
    assert [sum(round(1e6 * x) for x in row) for row in rows.tolist()] == [10**6] * 40


def test_names_and_kinds() -> None:
    """Tests that kinds whose families have instances have at least 30 of them, under different
    names, of all sizes.
    """
    for kind in KINDS:
        found = [one for one in instances_of_kind(kind.name).values() if one.source is None]
        if not found:  # real instances alone
            assert instances_of_kind(kind.name)
            continue
        assert len({one.name for one in found}) == len(found) >= 30
        assert {one.family for one in found} <= {family.name for family in kind.families}
        assert {one.size for one in found} == {"small", "paper", "large", "adversarial"}


def test_problems_follow_their_recipe() -> None:
    """Tests that a recipe's seed and parameters decide its problem."""
    one, two = (
        Recipe(name="serving-latency/paper-1/x", size="small", seed=seed, parameters={"tasks": 3})
        for seed in (1, 2)
    )
    assert one.generate() == one.generate() != two.generate()
    assert (one.kind, one.family) == ("serving-latency", "serving-latency/paper-1")
