"""The bare compiled call of a server."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given

from specopt import VerificationBatchProblem
from specopt.solvers.verification_batch import fast
from specopt.testing.strategies.verification_batch import problems as verification_batches


def call(problem: VerificationBatchProblem) -> list[int]:
    """The batch of the bare call."""
    weights = problem.estimator.weights(problem.new_tokens, problem.cached_tokens)
    out = np.empty(problem.requests, np.int64)
    count = fast.sweep(
        problem.expected_tokens.copy(),
        weights,
        problem.request_memory_bytes.copy(),
        problem.deadline_seconds.copy(),
        problem.now_seconds,
        problem.estimator.overhead_seconds,
        problem.memory_bytes,
        out,
    )
    return [int(i) for i in out[:count]]


@given(verification_batches(requests=(0, 12)))
def test_is_feasible_and_not_empty(problem: VerificationBatchProblem) -> None:
    """Tests that the batch is feasible, and empty only if nothing of value is."""
    from specopt import VerificationBatchPlan

    batch = call(problem)
    assert batch == sorted(set(batch))
    assert problem.violations(VerificationBatchPlan(batch=np.array(batch, dtype=np.int64))) == []
    able = [
        i
        for i in range(problem.requests)
        if problem.expected_tokens[i] > 0 and problem.violations(VerificationBatchPlan(batch=np.array([i]))) == []
    ]
    assert bool(batch) == bool(able)


def test_arguments_that_do_not_fit() -> None:
    """Tests that other lengths and other types are refused."""
    x, out = np.ones(3), np.empty(3, np.int64)
    for a, b, c, d in ((x[:2], x, x, x), (x, x[:2], x, x), (x, x, x[:2], x), (x, x, x, x[:2])):
        with pytest.raises(ValueError, match="must have one length"):
            fast.sweep(a, b, c, d, 0.0, 0.0, 9.0, out)
    with pytest.raises(TypeError):
        fast.sweep(x, x, x, x, 0.0, 0.0, 9.0, np.empty(3, np.int32))


def test_the_example_runs() -> None:
    """Tests that the example in the documentation is right."""
    assert doctest.testmod(fast).failed == 0
