"""Sums that meet a limit exactly in decimals, and not in binary: methods and bounds decide as the
judge does.

`SPECOPT_BATCHES=5000 .venv/bin/pytest tests/solvers/verification_batch/test_exact_equality.py`
takes that many random problems, from `SPECOPT_BATCHES_FROM` on.
"""

from __future__ import annotations

import json
import os
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.untyped import solve
from oracles import verification_batch as naive

from specopt import Status, VerificationBatchPlan, VerificationBatchProblem
from specopt.models.fields import Ints
from specopt.models.pass_time import VerificationTime
from specopt.models.problem import exceeds
from specopt.solvers.method import Method
from specopt.solvers.room import room, whole_room
from specopt.solvers.verification_batch import METHODS, threshold
from specopt.solvers.verification_batch.method import plan_of
from specopt.solvers.verification_batch.prepare import Prepared
from specopt.solvers.verification_batch.threshold import Threshold

DATA = Path(__file__).parents[2] / "data" / "edges"
EXACT = [method.name for method in METHODS if method.exact]
EPOCH = 1.7e9
"""Seconds since 1970, as clocks read: their last digit is 2.4e-7 s."""


def decimal(thousandths: int) -> float:
    """The float that a user who writes decimals gets."""
    return float(f"{thousandths}e-3")


def at_equality(seed: int) -> VerificationBatchProblem:
    """A batch in decimals; limits are sums of some requests, a last digit or a share of the
    tolerance off at times.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    a, b, c = (int(x) for x in rng.integers((1, 0, 0), (40, 3, 20)))
    new, cached = rng.integers(0, 6, n), rng.integers(0, 4, n) * int(rng.integers(0, 2))
    memory = rng.integers(0, 400, n)
    weights = a * new + b * cached
    off = rng.choice((0.0, 0.0, 0.0, 0.9e-9, 1.1e-9, 1.01e-9, -1e-12), n + 1)

    def some(amounts: Ints) -> int:
        return int(amounts[rng.random(n) < 0.5].sum())

    now = float(rng.choice((0.0, 0.0, -3.0, decimal(int(rng.integers(0, 5000))), EPOCH, -EPOCH)))
    values = rng.integers(0, 9000, n) if rng.random() < 0.5 else 1000 * rng.integers(1, 4, n)
    return VerificationBatchProblem(
        now_seconds=now,
        memory_bytes=decimal(some(memory)) / (1 + off[n]) if rng.random() < 0.5 else 1e3,
        expected_tokens=np.array([decimal(int(value)) for value in values]),
        new_tokens=new,
        cached_tokens=cached,
        request_memory_bytes=np.array([decimal(int(m)) for m in memory]),
        deadline_seconds=np.array(
            [now + decimal(c + some(weights)) / (1 + off[i]) for i in range(n)]
        ),
        estimator=VerificationTime(
            seconds_per_new_token=decimal(a),
            seconds_per_interaction=0.0,
            seconds_per_cached_token=decimal(b),
            overhead_seconds=decimal(c),
        ),
    )


def one(**fields: Any) -> dict[str, Any]:
    """One request of three tokens at 0.1 s, due in 0.3 s."""
    data: dict[str, Any] = json.loads((DATA / "verification-one-request-0.3.json").read_text())
    return data | fields


def check(problem: VerificationBatchProblem, tried: tuple[type[Method], ...] = METHODS) -> None:
    """Every method's plan is feasible, no bound is below the optimum, and exact methods find it."""
    data = problem.to_dict()
    optimum = float(naive.optimum(data))
    for method in tried:
        result = solve(problem, method.name)
        assert naive.feasible(data, result.plan.batch.tolist()), method.name
        assert result.bound >= optimum * (1 - 1e-14), method.name
        if method.exact:
            assert result.objective == pytest.approx(optimum, rel=method.tolerance, abs=0.0), (
                method.name
            )
            assert result.status is Status.OPTIMAL, method.name


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("one-request-0.3", 1.0),
        ("methods-disagree", 3.0),
        ("memory-sum", 3.0),
        ("milp-traceback", 3.0000002),
        ("presolve-loses", 9.633),
    ],
)
def test_known_cases(name: str, best: float) -> None:
    """Tests that every exact method has the optimum of cases that went wrong."""
    problem = VerificationBatchProblem.from_dict(
        json.loads((DATA / f"verification-{name}.json").read_text())
    )
    check(problem)
    assert [solve(problem, method).objective for method in EXACT] == [
        pytest.approx(best, rel=1e-15)
    ] * len(EXACT)


class TestDecimals:
    """Natural decimals at exact equality, and next to it."""

    @pytest.mark.parametrize("now", [0.0, -3.0, 0.1, EPOCH, -EPOCH, -0.3])
    def test_deadline(self, now: float) -> None:
        """Tests that 3 x 0.1 s meet a deadline of 0.3 s by any clock, negative and large readings
        included.
        """
        problem = VerificationBatchProblem.from_dict(
            one(now_seconds=now, deadline_seconds=[now + 0.3])
        )
        assert {solve(problem, method.name).objective for method in METHODS} == {1.0}

    @pytest.mark.parametrize("now", [0.0, EPOCH])
    def test_late(self, now: float) -> None:
        """Tests that what misses a deadline by more than the tolerance, and the clock's last
        digits, is late.
        """
        problem = VerificationBatchProblem.from_dict(
            one(now_seconds=now, deadline_seconds=[now + 0.299999])
        )
        for method in METHODS:
            result = solve(problem, method.name)
            assert (result.objective, result.bound, result.stats["hopeless"]) == (0.0, 0.0, [0])


class TestLastDigits:
    """Sums within the last digits of the tolerance, where the order of adding up decides: the judge
    has the word.
    """

    @staticmethod
    def crowd(requests: int, memory_bytes: float) -> VerificationBatchProblem:
        """As many requests of 0.1 bytes each, the first ten of them worth something."""
        return VerificationBatchProblem.from_dict(
            one(
                memory_bytes=memory_bytes,
                expected_tokens=[1.0] * 10 + [0.0] * (requests - 10),
                new_tokens=[0] * requests,
                cached_tokens=[0] * requests,
                request_memory_bytes=[0.1] * requests,
                deadline_seconds=[1.0] * requests,
            )
        )

    @staticmethod
    def border() -> float:
        """The largest memory in which the judge does not let five requests of 0.1 bytes."""
        memory = 0.5 * (1 - 1e-9) * (1 + 1e-15)
        everybody = VerificationBatchPlan(batch=np.arange(5))
        while not TestLastDigits.crowd(10, memory).violations(everybody):
            memory = float(np.nextafter(memory, 0.0))
        return memory

    @pytest.mark.parametrize("method", EXACT)
    def test_few(self, method: str) -> None:
        """Tests that exact methods are on the judge's side of the border to the last digit,
        whichever it is.
        """
        for memory, best in ((self.border(), 4.0), (float(np.nextafter(self.border(), 1.0)), 5.0)):
            result = solve(self.crowd(12, memory), method)
            assert (result.status, result.objective) == (Status.OPTIMAL, best)

    @pytest.mark.parametrize("method", ["threshold", "pareto"])
    def test_many(self, method: str) -> None:
        """Tests that among many requests a refused batch leaves its value as the bound, and no
        claim of a proof.
        """
        result = solve(self.crowd(20, self.border()), method)
        assert (result.status, result.objective) == (Status.FEASIBLE, 4.0)
        assert result.bound == pytest.approx(5.0)

    def test_rooms(self) -> None:
        """Tests that rooms enclose the judge's border, and that the border of whole numbers is its
        own.
        """
        for limit in (0.3, 1e9, 8e9, 3.0, 1.0, 0.1 + 0.2):
            border = whole_room(limit)
            assert not exceeds(border, limit)
            assert room(limit, digits=-8.0) <= border < room(limit, digits=8.0)
            assert exceeds(room(limit, digits=8.0), limit) and not exceeds(
                room(limit, digits=-8.0), limit
            )
        assert whole_room(1e9) >= 1e9 + 1 and whole_room(8e9) >= 8e9 + 8 and whole_room(0.0) == 0.0
        late = room(np.array([-1.0, -1e-6, -1e-9]), 1e-6)
        assert late == pytest.approx([-0.999998999, 1e-15, 9.99000001e-7], rel=1e-8, abs=0.0)
        assert not exceeds(float(late[2]) * (1 - 1e-15), -1e-9, 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_every_batch_is_as_the_judge_says(seed: int) -> None:
    """Tests that a batch, the empty one included, is admitted exactly where the judge finds nothing
    wrong with it.
    """
    problem = at_equality(seed)
    prepared = Prepared(problem)
    for size in range(problem.requests + 1):
        for batch in combinations(range(problem.requests), size):
            assert prepared.admits(batch) == (problem.violations(plan_of(batch)) == [])


@pytest.mark.parametrize(("labels", "meeting"), [(Threshold.few_labels, 0), (-1, 36), (-1, -1)])
@pytest.mark.parametrize("part", range(4))
def test_random(part: int, labels: int, meeting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that random batches at the limits are those of rational enumeration, also where subsets
    of two halves or HiGHS settle them.
    """
    monkeypatch.setattr(Threshold, "few_labels", labels)
    monkeypatch.setattr(threshold, "MEETING", meeting)
    first, count = (
        int(os.environ.get("SPECOPT_BATCHES_FROM", 0)),
        int(os.environ.get("SPECOPT_BATCHES", 40)),
    )
    for seed in range(first + part, first + count, 4):
        check(at_equality(seed), METHODS if labels >= 0 else (Threshold,))


@pytest.mark.parametrize("seed", [20704, 21447])
def test_requests_of_the_threshold_itself(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that prices do not leave out all requests of a threshold, of which its bound has
    counted one already.
    """
    monkeypatch.setattr(Threshold, "few_labels", -1)
    monkeypatch.setattr(threshold, "MEETING", -1)
    check(at_equality(seed), (Threshold,))
