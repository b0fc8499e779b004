"""Double Q-learning's kernel against plain Python; the simulation's is tested through
`simulate`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import draft_control_simulation as naive

from specopt import DraftControlProblem
from specopt.kinds.draft_control.strategies import problems as draft_controls
from specopt.solvers.draft_control.kernels import simulation as kernels
from specopt.solvers.draft_control.prepare import prepare


@given(draft_controls(), st.booleans(), st.integers(0, 2**63), st.sampled_from((0.0, 0.5, 0.9)))
@settings(max_examples=30)
def test_learning_in_plain_python(
    problem: DraftControlProblem, per_time: bool, key: int, discount: float
) -> None:
    """Tests that both routes, given one luck, end with the same two tables and the same running
    ratio.
    """
    prepared = prepare(problem)
    actions = [
        (length, index)
        for index in range(len(prepared.resolutions))
        for length in range(prepared.shortest, prepared.longest + 1)
    ]
    lengths, indices = (np.array(column, dtype=np.int64) for column in zip(*actions, strict=True))
    shape = 2, prepared.states, len(actions)
    learning = kernels.Learning(
        lengths=lengths,
        indices=indices,
        seconds=prepared.tables[1],
        per_time=per_time,
        discount=discount,
        step_power=0.8,
        explore_from=0.9,
        explore_to=0.2,
        forget=0.01,
    )
    learned = kernels.Learned(np.zeros(shape), np.zeros(shape, np.int64), np.array([1.0, 0.5]))
    cumulative = np.cumsum(prepared.transition, axis=1)
    kernels.learn(prepared.rates, cumulative, learning, np.uint64(key), 5, 120, 0, learned)
    (first, second), seen, running = learned
    plain = [1.0, 0.5]
    bits = [problem.distribution_bits(state) for state in problem.states]
    one, two = naive.learn(
        problem.to_dict(),
        bits,
        actions,
        per_time=per_time,
        discount=discount,
        step_power=0.8,
        explore=(0.9, 0.2),
        forget=0.01,
        key=key,
        done=5,
        steps=120,
        state=0,
        running=plain,
    )
    scale = max(1.0, float(np.abs(one).max()), float(np.abs(two).max()))
    assert first == pytest.approx(np.array(one), abs=1e-9 * scale)
    assert second == pytest.approx(np.array(two), abs=1e-9 * scale)
    assert running == pytest.approx(plain, rel=1e-9)
    assert seen.sum() == 120
