"""The static problem by bisection in the draft length, where tokens per second rise and then fall.

As long as the bits that count the accepted drafts stay the same, from L = 2^(k-1) to 2^k - 1, another draft always
takes d more seconds, and its token is less likely than the one before: N(L) is concave, T(L) affine. Then

    a^(L+1) T(L) - d N(L), which says whether one more draft raises N / T, never rises with L:

its change from L - 1 to L is (a - 1) a^L T(L) <= 0. So each such segment has one peak, and bisection finds it. With a
free downlink all draft lengths are one segment; otherwise N / T may have a peak in each. In the resolution nothing
of the kind holds: every one is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from specopt.models.acceptance import expected_tokens_per_step
from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import ONE_STATE, DraftControlMethod, offer_first_plan
from specopt.solvers.draft_control.prepare import prepare
from specopt.solvers.method import Condition, Outcome


@dataclass(frozen=True)
class Unimodal(DraftControlMethod):
    """Bisection for the peak of each resolution and each number of downlink bits."""

    name: ClassVar[str] = "unimodal"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; Eq. 12 of paper 3, one state"
    guarantee: ClassVar[str] = "optimal"
    complexity: ClassVar[str] = "O(R log L), with a downlink that takes time O(R log^2 L)"
    takes: ClassVar[tuple[Condition, ...]] = (ONE_STATE,)

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Find the best peak, then prove that no action is worth more than the seconds that it takes."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        fixed, bit = float(prepared.fixed[0]), float(prepared.per_count_bit[0])
        pairs = list(zip(prepared.rates[0].tolist(), prepared.per_draft[0].tolist(), strict=True))
        price, length, index, looks = -math.inf, prepared.shortest, 0, 0
        for r, (a, d) in enumerate(pairs):
            for low, high, bits in _segments(prepared.shortest, prepared.longest, bit > 0.0):
                base = fixed + bits * bit
                best = _peak(low, high, partial(_raises_rate, a, d, base))
                looks += 1
                ratio = expected_tokens_per_step(a, best) / (base + best * d)
                if ratio > price:
                    price, length, index = ratio, best, r
        plan = prepared.plan(np.array([length]), np.array([index]))
        budget.offer(plan)
        violation = -math.inf
        for a, d in pairs:
            for low, high, bits in _segments(prepared.shortest, prepared.longest, bit > 0.0):
                best = _peak(low, high, partial(_is_worth, a, price * d))
                violation = max(violation, expected_tokens_per_step(a, best) - price * (fixed + bits * bit + best * d))
        bound = price + max(violation, 0.0) / float(prepared.quickest[0])
        return Outcome(plan=plan, bound=bound, stats={"price": price, "mean_violation": violation, "peaks": looks})


def _raises_rate(a: float, d: float, base: float, L: int) -> bool:
    """Tell whether draft L + 1 raises N / T; if not, no later one does."""
    return a ** (L + 1) * (base + L * d) > d * expected_tokens_per_step(a, L)


def _is_worth(a: float, cost: float, L: int) -> bool:
    """Tell whether draft L + 1 yields more tokens than its seconds cost; if not, no later one does."""
    return a ** (L + 1) > cost


def _segments(shortest: int, longest: int, counted: bool) -> Iterator[tuple[int, int, int]]:
    """Yield ranges of draft lengths of one number of bits, and that number; one range of 0 bits if not counted."""
    if not counted:
        yield shortest, longest, 0
        return
    low = shortest
    while low <= longest:
        bits = low.bit_length()
        high = min(longest, (1 << bits) - 1)
        yield low, high, bits
        low = high + 1


def _peak(low: int, high: int, rises: Callable[[int], bool]) -> int:
    """Return the first L in low..high from which one more does not raise, `high` if all do."""
    while low < high:
        middle = (low + high) // 2
        if rises(middle):
            low = middle + 1
        else:
            high = middle
    return low
