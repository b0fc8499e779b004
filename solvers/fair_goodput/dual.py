"""The method `dual` for `fair-goodput`, which finds the optimum per round by a search over prices.

The problem is to maximise sum w_i U(f_i(s_i)) subject to sum s_i <= C, over the region that
`specopt.solvers.fair_goodput.region` describes. At a given price per token, every client's best s_i
has a closed form, and the total demand decreases with the price. The price at which the demand
equals the budget proves the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import Floats
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.common_rate import raised
from specopt.solvers.fair_goodput.method import (
    FEW,
    PER_ROUND,
    FairGoodputMethod,
    admitted,
    offer_first_plan,
)
from specopt.solvers.fair_goodput.region import Region, plan_of, region_of
from specopt.solvers.method import Outcome

SMALLEST_PRICE = 1e-290
"""Lower limit on the price of a token.

If the largest weight is about 1, tokens of smaller value have no effect in floating-point
arithmetic.
"""


@dataclass(frozen=True)
class Dual(FairGoodputMethod):
    """Find the fair optimum per round by a search over the price of a draft token."""

    name = "dual"
    exact = True
    source = "specopt; problem (1) of paper 5 over the region (2) in closed form"
    guarantee = "optimal, with the duality gap as proof"
    complexity = "O(N log C) per price, 10 to 60 prices; O(N log N) for the schedule"
    takes = (PER_ROUND,)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Find the optimal price, and build a schedule with the optimal mean allocation."""
        region = region_of(problem)
        few = problem.clients <= FEW
        if not few and (math.isfinite(budget.time_limit) or budget.callback is not None):
            offer_first_plan(problem, budget, region)
        try:
            best = optimise(problem, region, budget)
        except BaseException:
            if few:
                offer_first_plan(problem, budget, region)
            raise
        plan = plan_of(problem, best.tokens)
        if budget.callback is not None:
            budget.offer(plan)
        bound = best.bound(problem, plan.goodput)
        stats = {
            "price": best.price,
            "prices": best.passes,
            "duality_gap": best.gap,
            "frank_wolfe_gap": best.linear_gap,
            "entries": len(plan.schedule),
            "changes": plan.schedule.changes,
        }
        return admitted(problem, Outcome(plan=plan, bound=bound, stats=stats))


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal mean allocation and its optimality gaps.

    Parameters
    ----------
    tokens
        Mean draft tokens per round of each client.
    price
        Price per token, which is the multiplier of the budget.
    gap
        Duality gap at the price. No other plan improves the utility by more than this gap.
    linear_gap
        Frank-Wolfe gap, an upper bound on grad U(x) . (y - x) over all plans y.
    passes
        Number of prices tried.
    """

    tokens: Floats
    price: float
    gap: float
    linear_gap: float
    passes: int

    def bound(self, problem: FairGoodputProblem, goodput: Floats) -> float:
        """Return an upper bound on the utility of any plan, with goodput counted per round.

        `goodput` is the goodput of the allocation.
        """
        utility = problem.utility(goodput)
        spent = float((problem.weight * goodput ** (1.0 - problem.fairness)).sum())
        # Both bounds hold; the second stays in the range of the utility however steep it is.
        return min(utility + self.gap, raised(problem, utility, 1.0 + self.linear_gap / spent))


def optimise(problem: FairGoodputProblem, region: Region, budget: Budget) -> Optimum:
    """Return the optimal mean allocation per round.

    Raises
    ------
    OutOfTime, Stopped
        If the budget ends the search between two prices.
    """
    return Market(problem, region, budget).clear()


class Market:
    """A market for draft tokens, with the clients' demand at a price and the tokens on offer."""

    def __init__(self, problem: FairGoodputProblem, region: Region, budget: Budget) -> None:
        self.budget, self.kernels = budget, budget.load("fair_goodput.dual")
        self.fairness, self.tokens = problem.fairness, float(problem.budget_tokens)
        self.clients = clients = np.zeros(problem.clients, self.kernels.Client)
        # Rescale the weights, because the thresholds below are absolute.
        self.unit = math.ldexp(1.0, math.frexp(float(problem.weight.max()))[1])
        clients["a"], clients["w"] = problem.acceptance_rates, problem.weight / self.unit
        clients["lo"], clients["hi"] = region.least, region.most
        rates, near = clients["a"], np.minimum(region.most, math.ceil(self.tokens / len(clients)))
        with np.errstate(divide="ignore", invalid="ignore"):
            clients["L"] = np.log1p(rates - 1.0)
            clients["p"] = np.where(near > 0.0, np.exp(near * clients["L"]), 1.0)
        clients["n"], clients["m"] = near, expected_tokens(rates, near)
        self.highest = float(
            (clients["w"] * rates).max()
        )  # at this price, no client wants more than its minimum
        g = self.fairness
        least = expected_tokens(rates, region.most) ** (1.0 - g) if g > 1.0 else 1.0
        self.worth = float((clients["w"] * least).sum())  # at least w . x^(1-g)
        self.passes = 0

    def excess(self, price: float) -> float:
        """Set the clients' demand at a price, and return its excess over the available tokens."""
        self.budget.check()
        self.passes += 1
        found: float = self.kernels.demands(self.fairness, self.tokens, price, self.clients)
        return found

    def clear(self) -> Optimum:
        """Find the price at which demand equals the number of available tokens."""
        if self.highest <= SMALLEST_PRICE:
            self.excess(SMALLEST_PRICE)
            return self._proven(SMALLEST_PRICE)
        bracket = self._bracket()
        if isinstance(bracket, float):
            return self._proven(bracket)
        from scipy.optimize import brentq

        ends = {math.log(price): excess for price, excess in bracket}

        def excess(logarithm: float) -> float:
            if logarithm in ends:
                return ends[logarithm]
            found = self.excess(math.exp(logarithm))
            return 0.0 if self._meets(math.exp(logarithm), found) else found

        root = brentq(excess, *ends, xtol=1e-300, maxiter=1000)
        low = high = math.exp(root)
        if self._meets(low, self.excess(low)):
            return self._proven(low)
        # The last digit of a step in demand depends on the previous prices.
        step = 4e-16
        while self.excess(low) < 0.0:
            low *= 1.0 - step
            step *= 2.0
        more = self.clients["s"].copy()
        step = 4e-16
        while (spare := -self.excess(high)) < 0.0 and high < 2.0 * self.highest:
            high *= 1.0 + step
            step *= 2.0
        self._add(more - self.clients["s"], spare)
        return self._proven(high)

    def _meets(self, price: float, excess: float) -> bool:
        """Return whether demand equals the available tokens up to rounding. If so, a positive
        excess is removed from the demand.
        """
        if abs(excess) > max(
            1e-15 * self.tokens, 1e-14 * self.worth / price if excess < 0.0 else 0.0
        ):
            return False
        if excess > 0.0:
            self._add(self.clients["lo"] - self.clients["s"], -excess)
        return True

    def _add(self, most: Floats, total: float) -> None:
        """Change the total demand by `total`, client by client.

        `most` limits the change for each client.
        """
        room = np.maximum(0.0, most if total > 0.0 else -most)
        before = np.concatenate(([0.0], np.cumsum(room)[:-1]))
        self.clients["s"] += math.copysign(1.0, total) * np.clip(abs(total) - before, 0.0, room)

    def _bracket(self) -> float | tuple[tuple[float, float], tuple[float, float]]:
        """Return two prices that bracket the price at which demand equals the available tokens.

        Each price is paired with its excess demand. The first price is too low, and the second is
        too high. If demand equals the available tokens at a price that is tried, only that price is
        returned. `SMALLEST_PRICE` alone is returned if demand does not exceed the available tokens
        even at this price.
        """
        high, at_high = self.highest, min(0.0, float(self.clients["lo"].sum()) - self.tokens)
        price, factor = high / 4.0, 4.0
        if float(self.clients["hi"].sum()) <= self.tokens:
            price = SMALLEST_PRICE
        while True:
            price = max(price, SMALLEST_PRICE)
            found = self.excess(price)
            if self._meets(price, found) or (price == SMALLEST_PRICE and found <= 0.0):
                return price
            if found > 0.0:
                return (price, found), (high, at_high)
            high, at_high = price, found
            price /= factor
            factor = min(1e6, factor * factor)

    def _proven(self, price: float) -> Optimum:
        gap, linear_gap = self.kernels.certify(self.fairness, self.tokens, price, self.clients)
        return Optimum(
            self.clients["s"].copy(),
            price * self.unit,
            gap * self.unit,
            linear_gap * self.unit,
            self.passes,
        )
