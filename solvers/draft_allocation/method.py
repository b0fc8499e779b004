"""Functions that the methods of draft allocation share: a plan to start from, scaled weights, and
the certificate.

Token n = 1, 2, ... of client i adds w_i a_i^n to the objective. A client's marginals never
increase, so the C largest of all clients' marginals form a plan, and no plan within the budget can
gather more: taking them is optimal. The smallest marginal taken (or 0 if tokens are left) is an
optimal Lagrange multiplier of the budget. This proves it: sum_i max_S (w_i mu_i(S) - price S) +
price C bounds every plan, and this plan attains it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome

SMALLEST = 2.2250738585072014e-308
"""Marginals below this, of weights scaled by `scaled`, count as nothing: floating point has no full
precision there.
"""


@dataclass(frozen=True)
class DraftAllocationMethod(Method):
    """Base of the methods for `draft-allocation`."""

    solves = DraftAllocationProblem
    size_unit = "clients"

    def size_of(self, problem: DraftAllocationProblem) -> float:
        """Return the number of clients."""
        return problem.clients


def offer_first_plan(problem: DraftAllocationProblem, budget: Budget) -> None:
    """Offer the plan without drafts, which is always feasible, and a bound that needs no search."""
    budget.offer(DraftAllocationPlan(draft_tokens=np.zeros(problem.clients, np.int64)))
    budget.improve_bound(lagrangian_bound(problem, 0.0))
    budget.check()


def certify(problem: DraftAllocationProblem, draft_tokens: Ints, budget: Budget) -> Outcome:
    """Return the outcome of an allocation that takes the largest marginals, with the bound at its
    price.
    """
    plan = DraftAllocationPlan(draft_tokens=draft_tokens)
    budget.offer(plan)
    price = price_of(problem, draft_tokens)
    return Outcome(
        plan=plan,
        bound=lagrangian_bound(problem, price),
        stats={"price": price, "tokens": int(draft_tokens.sum())},
    )


def scaled(weights: Floats) -> Floats:
    """Return weights times a power of two, exactly, so that the largest is in [1/2, 1)."""
    return np.ldexp(weights, -math.frexp(float(weights.max()))[1])


def price_of(problem: DraftAllocationProblem, draft_tokens: Ints) -> float:
    """Return the value of the last token of an allocation, the smallest marginal of all; 0 if
    tokens are left.
    """
    drafting = draft_tokens > 0
    if int(draft_tokens.sum()) < problem.budget_tokens or not drafting.any():
        return 0.0
    with np.errstate(under="ignore"):
        marginals = problem.weights * np.power(problem.acceptance_rates, draft_tokens)
    return float(marginals[drafting].min())


def lagrangian_bound(problem: DraftAllocationProblem, price: float) -> float:
    """Return sum_i max_S (w_i mu_i(S) - price S) + price C over S within the caps: no plan has more
    (to rounding).

    Client i maximises by its marginals above the price: S = floor(log(price / w_i) / log a_i). A
    count that is off by rounding has a marginal equal to the price to rounding, and changes the
    maximum by less than that.
    """
    w, a, most = problem.weights, problem.acceptance_rates, problem.caps
    with np.errstate(all="ignore"):
        # the quotient first: logarithms of similar size cancel
        count = np.floor(np.log(price / w) / np.log(a))
        chosen = np.clip(np.where(w * a > price, count, 0.0), 0.0, most).astype(np.int64)
    unused: int = problem.budget_tokens - sum(chosen.tolist())
    return float((w * expected_tokens(a, chosen)).sum()) + price * unused
