"""The kernels of draft control against plain Python."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt import DraftControlProblem
from specopt.kinds.draft_control.strategies import problems as draft_controls
from specopt.solvers.draft_control.prepare import Prepared, prepare

problems = draft_controls(states=(1, 4), longest=9)


def kernels() -> Any:
    """The compiled module."""
    return importlib.import_module("specopt.solvers.draft_control.kernels.policy_iteration")


def action_of(prepared: Prepared, state: int, length: int, index: int) -> tuple[float, float]:
    """Tokens and seconds of an action, straight from the arrays."""
    a = float(prepared.rates[state, index])
    bits = math.ceil(math.log2(length + 1))
    seconds = prepared.verify[length] + prepared.fixed[state]
    seconds += length * prepared.per_draft[state, index] + bits * prepared.per_count_bit[state]
    return math.fsum(a**n for n in range(length + 1)), float(seconds)


def best_of(prepared: Prepared, state: int, price: float) -> float:
    """The largest tokens - price seconds of a state."""
    return max(
        tokens - price * seconds
        for length in range(prepared.shortest, prepared.longest + 1)
        for index in range(len(prepared.resolutions))
        for tokens, seconds in [action_of(prepared, state, length, index)]
    )


@given(problems, st.floats(0.0, 1e4), st.data())
def test_improve_finds_the_best_actions(
    problem: DraftControlProblem, price: float, data: st.DataObject
) -> None:
    """Tests that no action is worth more at a price, that one changes only for a better one, and
    how many have.
    """
    prepared = prepare(problem)
    S, R = prepared.rates.shape
    lengths = np.array(
        data.draw(
            st.lists(st.integers(prepared.shortest, prepared.longest), min_size=S, max_size=S)
        )
    )
    indices = np.array(data.draw(st.lists(st.integers(0, R - 1), min_size=S, max_size=S)))
    before = list(zip(lengths.tolist(), indices.tolist(), strict=True))
    values, slack = np.empty(S), 1e-9
    changed = kernels().improve(prepared.for_kernels, price, slack, lengths, indices, values)
    after = list(zip(lengths.tolist(), indices.tolist(), strict=True))
    assert changed == sum(a != b for a, b in zip(before, after, strict=True))
    for state in range(S):
        best = best_of(prepared, state, price)
        rounding = 1e-12 * (1.0 + abs(best))
        assert values[state] == pytest.approx(best, abs=rounding)
        tokens, seconds = action_of(prepared, state, *after[state])
        assert tokens - price * seconds >= best - slack - rounding
        if after[state] != before[state]:
            old_tokens, old_seconds = action_of(prepared, state, *before[state])
            assert tokens - price * seconds > old_tokens - price * old_seconds
