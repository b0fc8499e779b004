"""Double Q-learning's kernel against plain Python; the simulation's is tested through `simulate`."""

from __future__ import annotations

from typing import Any

import naive_draft_control_simulation as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_draft_control import draft_controls

from specopt import DraftControlProblem
from specopt.solvers._kernels import draft_control_simulation as kernels
from specopt.solvers.draft_control.tables import Tables


@given(draft_controls(), st.booleans(), st.integers(0, 2**63), st.sampled_from((0.0, 0.5, 0.9)))
@settings(max_examples=30)
def test_learning_in_plain_python(problem: DraftControlProblem, per_time: bool, key: int, discount: float) -> None:
    """Tests that both routes, given one luck, end with the same two tables and the same running ratio."""
    tables = Tables.of(problem)
    actions = [
        (length, index)
        for index in range(len(tables.resolutions))
        for length in range(tables.shortest, tables.longest + 1)
    ]
    lengths, indices = (np.array(column, dtype=np.int64) for column in zip(*actions, strict=True))
    first, second = (np.zeros((tables.states, len(actions))) for _ in range(2))
    seen = [np.zeros((tables.states, len(actions)), dtype=np.int64) for _ in range(2)]
    running = np.array([1.0, 0.5])
    learn: Any = kernels.learn  # Numba's own types count the arguments wrongly
    learn(
        *tables.arrays, np.cumsum(tables.transition, axis=1), lengths, indices, per_time, discount, 0.8, 0.9, 0.2,
        0.01, np.uint64(key), 5, 120, 0, first, second, *seen, running,
    )  # fmt: skip
    plain = [1.0, 0.5]
    bits = [problem.distribution_bits(state) for state in problem.states]
    one, two = naive.learn(
        problem.to_dict(), bits, actions, per_time=per_time, discount=discount, step_power=0.8, explore=(0.9, 0.2),
        forget=0.01, key=key, done=5, steps=120, state=0, running=plain,
    )  # fmt: skip
    scale = max(1.0, float(np.abs(one).max()), float(np.abs(two).max()))
    assert first == pytest.approx(np.array(one), abs=1e-9 * scale)
    assert second == pytest.approx(np.array(two), abs=1e-9 * scale)
    assert running == pytest.approx(plain, rel=1e-9)
    assert seen[0].sum() + seen[1].sum() == 120
