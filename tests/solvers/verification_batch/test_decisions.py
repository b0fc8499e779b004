"""Decisions of the long run against the methods for a single epoch, which share no code with
them.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.untyped import solve

from specopt import Status
from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from specopt.online import VerificationScheduler
from specopt.solvers.verification_batch.policies import Policy, PolicyName

NOW, GUARD = 10.0, 0.004


def submit(
    scheduler: VerificationScheduler,
    key: int,
    *,
    tokens: float,
    new: int,
    cached: int,
    deadline: float,
) -> None:
    """Submit a request of a device of one token per second, whose draft is due at the deadline."""
    scheduler.submit(
        key,
        class_speed=1.0,
        expected_tokens=tokens,
        new_tokens=new,
        cached_tokens=cached,
        response_start_seconds=0.0,
        tokens_done=0,
        iteration_start_seconds=deadline - tokens,
    )


def epoch(
    seed: int, requests: int, equal: bool
) -> tuple[VerificationBatchProblem, VerificationScheduler, VerificationScheduler]:
    """Return one epoch as a problem, and as schedulers by Algorithm 1 without late requests and by
    the epoch's best.
    """
    generator = np.random.default_rng(seed)
    new = generator.integers(1, 8, requests)
    cached = generator.integers(0, 1500, requests)
    new[cached < 150] += 300
    tokens = np.full(requests, 3.0) if equal else generator.uniform(1.0, 5.0, requests)
    deadlines = NOW + generator.uniform(0.0, 0.15, requests)
    schedulers = [
        VerificationScheduler(
            TABLE_12, Policy(name=name, fill_with_late=False), guard_seconds=GUARD
        )
        for name in ("algorithm-1-drop", "per-epoch")
    ]
    for scheduler in schedulers:
        for i in range(requests):
            submit(
                scheduler,
                i,
                tokens=float(tokens[i]),
                new=int(new[i]),
                cached=int(cached[i]),
                deadline=float(deadlines[i]),
            )
    problem = VerificationBatchProblem(
        now_seconds=NOW,
        memory_bytes=1e12,
        guard_seconds=GUARD,
        expected_tokens=tokens,
        new_tokens=new,
        cached_tokens=cached,
        request_memory_bytes=np.ones(requests),
        deadline_seconds=np.array([deadlines[i] - tokens[i] + tokens[i] for i in range(requests)]),
        estimator=TABLE_12,
    )
    return problem, schedulers[0], schedulers[1]


@pytest.mark.parametrize("seed", range(12))
def test_algorithm_1_is_that_of_one_epoch(seed: int) -> None:
    """Tests that the policy's batch is the batch of the method `algorithm-1-drop`, unless all
    requests are late.
    """
    problem, scheduler, _ = epoch(seed, 40, equal=False)
    result = solve(problem, "algorithm-1-drop")
    batch = sorted(scheduler.next_batch(NOW).keys, key=int)
    assert batch
    assert batch == sorted(result.plan.batch.tolist())


@pytest.mark.parametrize("seed", range(12))
def test_best_of_the_epoch(seed: int) -> None:
    """Tests that the policy is optimal in its epoch where all values are equal, and never below
    half of the optimum.
    """
    for equal in (True, False):
        problem, _, scheduler = epoch(seed, 40, equal)
        best = solve(problem)
        found = VerificationBatchPlan(
            batch=np.array(scheduler.next_batch(NOW).keys, dtype=np.int64)
        )
        assert problem.violations(found) == []
        objective = problem.evaluate(found).objective
        assert best.status is Status.OPTIMAL
        if equal:
            assert objective == pytest.approx(best.objective)
        assert 0.5 * best.objective <= objective <= best.objective + 1e-9


@pytest.mark.parametrize("name", ["algorithm-1-drop", "per-epoch"])
@pytest.mark.parametrize(("memory", "room", "count"), [(1000.0, 50.0, 4), (1e9, 6.5, 6)])
def test_late_requests_fill_what_a_batch_leaves(
    name: PolicyName, memory: float, room: float, count: int
) -> None:
    """Tests that late requests join the batch in order of arrival, as far as memory and the
    tightest deadline allow.
    """
    each = float(
        TABLE_12.weights(np.array([5]), np.array([200]))[0]
    )  # seconds; a request holds 205 bytes
    scheduler = VerificationScheduler(TABLE_12, name, memory_bytes=memory, kv_bytes_per_token=1.0)
    for key in range(20):
        deadline = NOW + TABLE_12.overhead_seconds + room * each if key == 7 else NOW - 1.0
        submit(scheduler, key, tokens=3.0, new=5, cached=200, deadline=deadline)
    assert scheduler.next_batch(NOW).keys == (7, 0, 1, 2, 3, 4, 5)[:count]
