"""The optimum per round by the price of a draft token: closed form per client, one search over prices.

Over the region of `specopt.solvers.fair_goodput.region` the problem is: maximise sum w_i U(f_i(s_i)) with
sum s_i <= C. At a price per token every client's best s_i has a closed form, and total demand falls with the price.
The price at which demand meets the budget proves the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.fair_goodput import FairGoodputProblem
from specopt.models.fields import Floats
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.method import FairGoodputMethod
from specopt.solvers.fair_goodput.region import Region, goodput_of, plan_of, region_of
from specopt.solvers.method import Outcome

SMALLEST_PRICE = 1e-290
"""Tokens worth less have no effect in floating-point numbers."""


@dataclass(frozen=True)
class Dual(FairGoodputMethod):
    """The fair optimum per round, by a search over the price of a draft token."""

    name: ClassVar[str] = "dual"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; problem (1) of paper 5 over the region (2) in closed form"
    guarantee: ClassVar[str] = "optimal, with the duality gap as proof"
    complexity: ClassVar[str] = "O(N log C) per price, 10 to 60 prices; O(N log N) for the schedule"
    per: ClassVar[tuple[str, ...]] = ("round",)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Search the price, then share out the budget and mix integer allocations."""
        region = region_of(problem)
        if isinstance(region, str):
            return Outcome.infeasible(region)
        if math.isfinite(budget.time_limit) or budget.callback is not None:
            offer_quick_plan(problem, region, budget)
        best = optimise(problem, region, budget)
        plan = plan_of(problem, best.tokens)
        if budget.callback is not None:
            budget.offer(plan)
        bound = problem.utility(plan.goodput) + best.gap
        gradient = problem.weight * plan.goodput**-problem.fairness
        certificate = linear_gap(problem, region, gradient, best, budget)
        return Outcome(
            plan=plan,
            bound=bound,
            termination=Termination.CONVERGED,
            stats={
                "price": best.price,
                "prices": best.passes,
                "duality_gap": best.gap,
                "frank_wolfe_gap": certificate,
                "entries": len(plan.schedule),
                "changes": plan.schedule.changes,
            },
        )


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal mean allocation and its proof.

    Parameters
    ----------
    tokens
        Mean draft tokens per round of each client.
    price
        Price per token, the budget's multiplier.
    gap
        By how much any plan may gain more, at most.
    passes
        Number of prices tried.
    """

    tokens: Floats
    price: float
    gap: float
    passes: int


def offer_quick_plan(problem: FairGoodputProblem, region: Region, budget: Budget) -> None:
    """Offer equal drafts, or what the least rates need if there are any."""
    tokens = region.least
    if problem.min_goodput is None:
        tokens = np.minimum(float(problem.budget_tokens // problem.clients), region.most)
    budget.offer(plan_of(problem, tokens))


def optimise(
    problem: FairGoodputProblem,
    region: Region,
    budget: Budget,
    *,
    fairness: float | None = None,
    weights: Floats | None = None,
    guess: float | None = None,
) -> Optimum:
    """Return the optimal mean allocation per round.

    Parameters
    ----------
    problem, region
        What to optimise over.
    budget
        Of time.
    fairness, weights
        Another utility than the problem's.
    guess
        A price that may be near the optimal one.
    """
    kernels = budget.load("fair_goodput")
    rates = np.array(problem.acceptance_rates)  # kernels take no read-only arrays
    with np.errstate(divide="ignore"):
        logarithms = np.log1p(rates - 1.0)
    g = problem.fairness if fairness is None else fairness
    w = np.array(problem.weight if weights is None else weights)
    C = float(problem.budget_tokens)
    near = np.zeros(problem.clients, dtype=np.int64)
    tokens = np.empty(problem.clients)
    passes = 0

    def excess(price: float) -> float:
        """Return how far demand at a price exceeds the budget."""
        nonlocal passes
        budget.check()
        passes += 1
        return float(kernels.demands(rates, logarithms, w, g, price, region.least, region.most, C, near, tokens))

    def optimum(price: float) -> Optimum:
        gap = kernels.duality_gap(rates, logarithms, w, g, price, region.least, region.most, C, near, tokens)
        return Optimum(tokens, price, float(gap), passes)

    # Bracket: above `high` demand is within the budget, at `low` it is not.
    high = 2.0 * float((w * rates).max())
    if high <= SMALLEST_PRICE or excess(SMALLEST_PRICE) <= 0.0:
        excess(SMALLEST_PRICE)
        return optimum(SMALLEST_PRICE)
    near[:] = np.minimum(region.most, math.ceil(C / problem.clients)).astype(np.int64)
    at_high = -C
    price = high / 4.0 if guess is None else min(guess, high / 2.0)
    factor = 4.0 if guess is None else 1.0 + 1e-9
    low, at_low = 0.0, math.inf
    while low == 0.0:
        found = excess(price)
        if found > 0.0:
            low, at_low = price, found
        else:
            high, at_high = price, found
            price = max(SMALLEST_PRICE, price / factor)
            factor = min(1e6, factor * factor * 2.0)
    factor = 1.0 + 1e-9
    while guess is not None and at_high == -C:  # the guess was below: close in from above
        price = low * factor
        if price >= high:
            break
        found = excess(price)
        if found > 0.0:
            low, at_low = price, found
        else:
            high, at_high = price, found
        factor = min(1e6, factor * factor * 2.0)

    # Chandrupatla's root search in log price; it halves where demand has steps.
    a, fa, b, fb = math.log(high), at_high, math.log(low), at_low
    c, fc = a, fa
    t = 0.5
    while (math.exp(max(a, b)) - math.exp(min(a, b))) * abs(fa - fb) > 1e-16 * max(1.0, C * math.exp(min(a, b))):
        x = a + t * (b - a)
        if not min(a, b) < x < max(a, b):
            x = 0.5 * (a + b)
            if not min(a, b) < x < max(a, b):
                break
        fx = excess(math.exp(x))
        if abs(fx) * math.exp(x) <= 1e-14 * max(1.0, C * math.exp(x)):
            if fx > 0.0:
                kernels.trim(tokens, region.least, fx)
            return optimum(math.exp(x))
        c, fc = (a, fa) if (fx > 0.0) == (fa > 0.0) else (b, fb)
        if (fx > 0.0) != (fa > 0.0):
            b, fb = a, fa
        a, fa = x, fx
        xi = (a - b) / (c - b) if c != b else 0.0
        phi = (fa - fb) / (fc - fb) if fc != fb else 0.0
        if phi * phi < xi and (1.0 - phi) ** 2 < 1.0 - xi:
            t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            t = min(1.0 - 1e-9, max(1e-9, t))
        else:
            t = 0.5
    low, high = math.exp(min(a, b)), math.exp(max(a, b))
    excess(low)
    more = tokens.copy()
    spare = -excess(high)
    kernels.fill(tokens, more, spare)
    return optimum(high)


def linear_gap(problem: FairGoodputProblem, region: Region, gradient: Floats, found: Optimum, budget: Budget) -> float:
    """Return the largest gradient . (y - x) over the region: concavity makes it a proof, too."""
    best = optimise(problem, region, budget, fairness=0.0, weights=gradient, guess=found.price)
    gain = goodput_of(problem.acceptance_rates, best.tokens) - goodput_of(problem.acceptance_rates, found.tokens)
    return max(0.0, float((gradient * gain).sum()))
