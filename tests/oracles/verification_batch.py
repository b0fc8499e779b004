"""Verification batching again, from paper 2 and in exact rational numbers; imports nothing of the
package.

Slow and obvious: every subset, every constraint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any


def weight(problem: dict[str, Any], i: int) -> Fraction:
    """What request i adds to the time of its batch (Eq. 18-19)."""
    e = problem["estimator"]
    new, cached = int(problem["new_tokens"][i]), int(problem["cached_tokens"][i])
    return (
        Fraction(e["seconds_per_new_token"]) * new
        + Fraction(e["seconds_per_interaction"]) * ((cached + new) * new)
        + Fraction(e["seconds_per_cached_token"]) * cached
    )


def seconds(problem: dict[str, Any], batch: Sequence[int]) -> Fraction:
    """T(B) (Eq. 19)."""
    return Fraction(problem["estimator"]["overhead_seconds"]) + sum(
        (weight(problem, i) for i in batch), Fraction(0)
    )


def objective(problem: dict[str, Any], batch: Sequence[int]) -> Fraction:
    """Sum of the expected tokens."""
    return sum((Fraction(problem["expected_tokens"][i]) for i in batch), Fraction(0))


def feasible(problem: dict[str, Any], batch: Sequence[int]) -> bool:
    """Whether memory and every member's deadline hold (Eq. 14-15), within the tolerance of the
    format.
    """
    memory = sum((Fraction(problem["request_memory_bytes"][i]) for i in batch), Fraction(0))
    now, time = problem["now_seconds"], seconds(problem, batch)
    return not batch or (
        fits(memory, Fraction(problem["memory_bytes"]))
        and all(
            fits(
                time,
                Fraction(due) - Fraction(now),
                Fraction(math.ulp(due)) + Fraction(math.ulp(now)),
            )
            for due in (problem["deadline_seconds"][i] for i in batch)
        )
    )


def fits(amount: Fraction, limit: Fraction, readings: Fraction = Fraction(0)) -> bool:
    """Whether amount <= limit, a difference of clock readings perhaps, is no violation."""
    return amount <= limit + max(abs(limit), amount) / 10**9 + readings


def optimum(problem: dict[str, Any]) -> Fraction:
    """The largest objective of all feasible batches."""
    count = len(problem["expected_tokens"])
    every = (batch for size in range(count + 1) for batch in combinations(range(count), size))
    return max(objective(problem, batch) for batch in every if feasible(problem, batch))


def algorithm_1(problem: dict[str, Any], drop_hopeless: bool) -> list[int]:
    """Algorithm 1 line by line, v-hat the marginal cost."""
    now, delta = Fraction(problem["now_seconds"]), Fraction(problem.get("guard_seconds", 0.0))
    due = [Fraction(d) for d in problem["deadline_seconds"]]
    queue = [i for i in range(len(due)) if not drop_hopeless or feasible(problem, [i])]
    cost = {i: weight(problem, i) for i in queue}
    critical = [i for i in queue if now >= due[i] - cost[i] - delta]
    others = [i for i in queue if i not in critical]
    critical.sort(key=lambda i: (due[i], i))
    others.sort(key=lambda i: (-Fraction(problem["expected_tokens"][i]) / cost[i], i))
    batch: list[int] = []
    for i in [*critical, *others]:
        if not feasible(problem, [*batch, i]):
            return batch
        batch.append(i)
    return batch
