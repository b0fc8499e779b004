"""Functions shared by the methods for `draft-allocation` problems: the initial plan, scaled weights
and the certificate of optimality.

Token n = 1, 2, ... of client i adds w_i a_i^n, its marginal value, to the objective. A client's
marginal values never increase, so the C largest marginal values of all clients, where C is the
budget, form a feasible plan. No plan within the budget can have a larger sum, so this plan is
optimal. The smallest of these marginal values (or 0 if the budget is not exhausted) is an optimal
Lagrange multiplier of the budget constraint. For any multiplier >= 0, called the price, sum_i max_S
(w_i mu_i(S) - price S) + price C is an upper bound on the value of every plan. At the optimal
multiplier, the plan attains the bound, which proves that it is optimal.
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
"""Threshold below which marginal values are treated as zero, because smaller floating-point numbers
lack full precision. It applies to weights that `scaled` has scaled.
"""


@dataclass(frozen=True)
class DraftAllocationMethod(Method):
    """Base class of the methods for `draft-allocation` problems."""

    solves = DraftAllocationProblem
    size_unit = "clients"

    def size_of(self, problem: DraftAllocationProblem) -> float:
        """Return the number of clients."""
        return problem.clients


def offer_first_plan(problem: DraftAllocationProblem, budget: Budget) -> None:
    """Record in the budget a plan without drafts, which is always feasible, and the value of the
    caps, which bounds every plan. Neither of them requires a search.
    """
    budget.offer(DraftAllocationPlan(draft_tokens=np.zeros(problem.clients, np.int64)))
    most = expected_tokens(problem.acceptance_rates, problem.caps)
    budget.improve_bound(float((problem.weights * most).sum()))
    budget.check()


def certify(problem: DraftAllocationProblem, draft_tokens: Ints, budget: Budget) -> Outcome:
    """Return the outcome for an allocation of the tokens with the largest marginal values.

    The outcome includes the Lagrangian bound at the price of the allocation.
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
    """Scale the weights exactly, by a power of two, such that the largest weight is in [1/2, 1)."""
    return np.ldexp(weights, -math.frexp(float(weights.max()))[1])


def price_of(problem: DraftAllocationProblem, draft_tokens: Ints) -> float:
    """Return the smallest marginal value of any allocated token, or 0 if the budget is not
    exhausted.
    """
    drafting = draft_tokens > 0
    if int(draft_tokens.sum()) < problem.budget_tokens or not drafting.any():
        return 0.0
    with np.errstate(under="ignore"):
        marginals = problem.weights * np.power(problem.acceptance_rates, draft_tokens)
    return float(marginals[drafting].min())


def lagrangian_bound(problem: DraftAllocationProblem, price: float) -> float:
    """Return an upper bound on the value of every plan, up to rounding.

    The bound is sum_i max_S (w_i mu_i(S) - price S) + price C, with S within the caps. For client
    i, the maximum is attained by the tokens whose marginal values exceed the price, so S =
    floor(log(price / w_i) / log a_i). If rounding changes S, the marginal value in question equals
    the price up to rounding, so the maximum changes by less than the rounding error.
    """
    w, a, most = problem.weights, problem.acceptance_rates, problem.caps
    with np.errstate(all="ignore"):
        # divide before taking the logarithm: a difference of similar logarithms loses digits
        count = np.floor(np.log(price / w) / np.log(a))
        chosen = np.clip(np.where(w * a > price, count, 0.0), 0.0, most).astype(np.int64)
    unused: int = problem.budget_tokens - sum(chosen.tolist())
    return float((w * expected_tokens(a, chosen)).sum()) + price * unused
