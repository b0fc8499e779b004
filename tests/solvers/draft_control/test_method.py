"""The certificate of draft control: what any price proves."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from helpers.untyped import generate
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import draft_control as naive

from specopt import DraftControlProblem
from specopt.kinds.draft_control.strategies import problems as draft_controls
from specopt.solvers.budget import MEMORY_LIMIT, Budget
from specopt.solvers.draft_control.decoupled import Decoupled
from specopt.solvers.draft_control.double_q_learning import DoubleQLearning
from specopt.solvers.draft_control.method import (
    DraftControlMethod,
    certify,
    first_actions,
    weigh,
)
from specopt.solvers.draft_control.prepare import prepare


@settings(max_examples=60)
@given(draft_controls(), st.floats(0.0, 3.0))
def test_any_price_gives_a_bound(problem: DraftControlProblem, factor: float) -> None:
    """Tests that the bound holds for prices off the optimum, and follows its definition."""
    prepared = prepare(problem)
    best = float(naive.optimum(problem.to_dict()))
    price = factor * best
    outcome = certify(prepared, first_actions(prepared), Budget(problem), price)
    assert outcome.bound is not None
    assert outcome.bound >= best * (1 - 1e-12)
    exact = problem.to_dict()
    expected = sum(
        share
        * max(
            naive.tokens(exact, s, a) - price * naive.seconds(exact, s, a)
            for a in naive.actions(exact)
        )
        for s, share in enumerate(naive.stationary(naive.chain(exact)))
    )
    assert outcome.stats["mean_violation"] == pytest.approx(
        float(expected), rel=1e-9, abs=1e-12 * max(1.0, price)
    )


@settings(max_examples=60)
@given(draft_controls(longest=5), st.data())
def test_tokens_seconds_and_shares_are_those_of_the_oracle(
    problem: DraftControlProblem, data: st.DataObject
) -> None:
    """Tests that tokens and seconds of a policy, and its rate by the shares of the states, are
    those of the oracle, to rounding.
    """
    exact, prepared = problem.to_dict(), prepare(problem)
    actions = st.integers(0, prepared.actions - 1)
    choice = np.array(
        data.draw(st.lists(actions, min_size=prepared.states, max_size=prepared.states))
    )
    lengths, indices = (column[choice].tolist() for column in prepared.choices)
    policy = [
        (length, exact["resolutions"][index])
        for length, index in zip(lengths, indices, strict=True)
    ]
    tokens, seconds = weigh(prepared, choice)
    assert tokens == pytest.approx(
        [float(naive.tokens(exact, s, a)) for s, a in enumerate(policy)], rel=1e-13
    )
    assert seconds == pytest.approx(
        [float(naive.seconds(exact, s, a)) for s, a in enumerate(policy)], rel=1e-13
    )
    rate = float(prepared.shares @ tokens) / float(prepared.shares @ seconds)
    assert rate == pytest.approx(float(naive.objective(exact, policy)), rel=1e-13)


@pytest.mark.parametrize("lengths", [[0, 300], [5000, 5300]])
@pytest.mark.parametrize("method", [Decoupled(), DoubleQLearning(steps=10)])
def test_the_declared_memory_is_enough(method: DraftControlMethod, lengths: list[int]) -> None:
    """Tests that no more is held than is declared, and not much less, wherever draft lengths
    begin.
    """
    base = generate("draft-control/random", states=20, seed=1)
    problem = base.from_dict(base.to_dict() | {"draft_lengths": lengths})
    method.run(problem, Budget(problem))  # modules and kernels are loaded
    tracemalloc.start()
    method.run(problem, Budget(problem))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    declared = sum(method.bytes_needed(problem).values())
    assert 0.5 * declared < peak <= declared


def test_the_default_memory_limit_allows_30_million_pairs() -> None:
    """Tests that tables of 30 million pairs of state and action are within the default limit."""
    base = generate("draft-control/random", states=300, resolutions=10, seed=1)
    problem = base.from_dict(base.to_dict() | {"draft_lengths": [0, 10_000]})
    assert Decoupled().size_of(problem) > 30e6
    assert sum(Decoupled().bytes_needed(problem).values()) < MEMORY_LIMIT
