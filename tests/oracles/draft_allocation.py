"""Draft allocation again, from paper 5 and in exact rational numbers; imports nothing of the
package.

Slow and obvious: sums term by term, enumeration of everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from oracles.fair_goodput import allocations as allocations


def goodput(rate: float, drafts: int) -> Fraction:
    """1 + a + ... + a^S."""
    a, total, power = Fraction(rate), Fraction(1), Fraction(1)
    for _ in range(drafts):
        power *= a
        total += power
    return total


def objective(problem: dict[str, Any], drafts: Sequence[int]) -> Fraction:
    """The objective of Eq. 5."""
    rows = zip(problem["weights"], problem["acceptance_rates"], drafts, strict=True)
    return sum(
        (Fraction(weight) * goodput(rate, count) for weight, rate, count in rows), Fraction(0)
    )


def feasible(problem: dict[str, Any], drafts: Sequence[int]) -> bool:
    """Whether budget and limits hold."""
    limits = problem.get("max_draft_tokens") or [problem["budget_tokens"]] * len(drafts)
    return sum(drafts) <= problem["budget_tokens"] and all(
        s <= m for s, m in zip(drafts, limits, strict=True)
    )


def optimum(problem: dict[str, Any]) -> Fraction:
    """The largest objective of all feasible allocations."""
    budget = problem["budget_tokens"]
    every = allocations([budget] * len(problem["weights"]), budget)
    return max(objective(problem, drafts) for drafts in every if feasible(problem, drafts))


def by_sorting(problem: dict[str, Any]) -> list[int]:
    """The allocation of the C largest of all marginals w a^n, sorted once; equal ones by client."""
    limits = problem.get("max_draft_tokens") or [problem["budget_tokens"]] * len(problem["weights"])
    rows = enumerate(zip(problem["weights"], problem["acceptance_rates"], limits, strict=True))
    marginals = [
        (-(weight * rate**n), client)
        for client, (weight, rate, limit) in rows
        for n in range(1, min(limit, problem["budget_tokens"]) + 1)
        if weight * rate**n > 0
    ]
    drafts = [0] * len(problem["weights"])
    for _, client in sorted(marginals)[: problem["budget_tokens"]]:
        drafts[client] += 1
    return drafts
