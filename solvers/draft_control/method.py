"""What the methods of draft control share: a plan to start from, the price of a second, and the
certificate.

Certificate. The next state does not depend on the action, so every policy has the stationary
distribution pi of the chain. For any price rho >= 0 let

    eps = sum over s of pi(s) max over actions of (N(s, a) - rho T(s, a)).

Then E[N] - rho E[T] <= eps for every policy, so that

    E[N] / E[T] <= rho + eps / E[T] <= rho + max(eps, 0) / (sum over s of pi(s) min over actions of
    T(s, a)).

The best rate as the price leaves eps = 0, to rounding. Two things are rounded: pi, by state
reduction without subtractions, to some S units in the last place of every share, however rarely the
chain moves; and sums of terms of one sign. Both are far below the 1e-9 within which a bound counts
as equal. Relative values would prove no more, since pi cancels them, and where the chain hardly
mixes they are as large as its mean sojourns, and their rounding would be in the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.draft_control.problem import DraftControlProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.prepare import Prepared, prepare
from specopt.solvers.method import Method, Outcome

SLACK = 1e-13
"""What an action's value must be better by, of the tokens that an iteration can yield, to replace
another.
"""

MAX_ROUNDS = 1000
"""More are never needed: the rate rises from one to the next, as fast as in Newton's method."""

Rate = Callable[[Floats, Floats], float]
"""Given expected tokens and seconds of the iterations of every state, the rate of a policy."""


@dataclass(frozen=True)
class DraftControlMethod(Method):
    """Base of the methods for `draft-control`."""

    solves = DraftControlProblem
    size_unit = "pairs of state and action"

    def size_of(self, problem: DraftControlProblem) -> float:
        """Return the number of actions of all states."""
        return len(problem.states) * actions(problem)

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Offer a first plan, and search."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        return self.search(prepared, budget.load("draft_control.policy_iteration"), budget)

    def search(self, prepared: Prepared, kernels: Any, budget: Budget) -> Outcome:
        """Solve within a budget that has a first plan."""
        raise NotImplementedError


def actions(problem: DraftControlProblem) -> int:
    """Return the number of actions of each state: resolutions times draft lengths."""
    shortest, longest = problem.draft_lengths
    return len(problem.resolutions) * (longest - shortest + 1)


def offer_first_plan(prepared: Prepared, budget: Budget) -> None:
    """Offer the plan of the shortest drafts, which is always feasible."""
    budget.offer(prepared.plan(*first_actions(prepared)))
    budget.check()


def first_actions(prepared: Prepared) -> tuple[Ints, Ints]:
    """Return lengths and resolution indices of the shortest drafts."""
    return np.full(prepared.states, prepared.shortest), np.zeros(prepared.states, np.int64)


def weigh(kernels: Any, prepared: Prepared, lengths: Ints, indices: Ints) -> tuple[Floats, Floats]:
    """Return expected tokens and seconds of a policy's iterations, each of shape (S,)."""
    tokens, seconds = np.empty(prepared.states), np.empty(prepared.states)
    kernels.weigh(prepared.for_kernels, lengths, indices, tokens, seconds)
    return tokens, seconds


def shares_of(kernels: Any, prepared: Prepared) -> Floats:
    """Return the stationary distribution, shape (S,), O(S^3)."""
    shares = np.zeros(prepared.states)
    shares[prepared.recurrent] = kernels.stationary(prepared.recurrent_chain)
    return shares


def best_values(kernels: Any, prepared: Prepared, price: float) -> Floats:
    """Return the largest N - price T of each state, shape (S,)."""
    best = np.empty(prepared.states)
    kernels.improve(prepared.for_kernels, price, np.inf, *first_actions(prepared), best)
    return best


def certify(
    kernels: Any,
    prepared: Prepared,
    lengths: Ints,
    indices: Ints,
    budget: Budget,
    price: float | None = None,
    **stats: object,
) -> Outcome:
    """Return the outcome of a policy with the bound that a price (by default the optimal one)
    proves.
    """
    plan = prepared.plan(lengths, indices)
    budget.offer(plan)
    shares = shares_of(kernels, prepared)
    if price is None:
        price = best_price(kernels, prepared, in_the_mean(shares), budget)[2]
    violation = float(shares @ best_values(kernels, prepared, price))
    bound = price + max(0.0, violation) / float(shares @ prepared.quickest)
    budget.improve_bound(bound)
    tokens, seconds = weigh(kernels, prepared, lengths, indices)
    certificate = {
        "price": price,
        "mean_violation": violation,
        "tokens_per_iteration": float(shares @ tokens),
        "seconds_per_iteration": float(shares @ seconds),
    }
    return Outcome(plan=plan, bound=bound, stats=certificate | stats)


def in_the_mean(shares: Floats) -> Rate:
    """Return the rate of a policy whose states have these shares of the iterations."""
    return lambda tokens, seconds: float(shares @ tokens) / float(shares @ seconds)


def best_price(
    kernels: Any, prepared: Prepared, rate: Rate, budget: Budget, *, offers: bool = False
) -> tuple[Ints, Ints, float, int]:
    """Return lengths, resolution indices and rate of an optimal policy, and the rounds that it
    took.

    Dinkelbach's method: the rate of a policy is the price at which the next one is best, state by
    state; the first one has the shortest drafts. `rate` returns it, `offers` says whether the
    policies on the way are offered.
    """
    lengths, indices = first_actions(prepared)
    best = np.empty(prepared.states)
    rounds, changed = 0, 1
    while changed and rounds < MAX_ROUNDS:
        if rounds and offers:
            budget.offer(prepared.plan(lengths, indices))
        budget.check()
        rounds += 1
        tokens, seconds = weigh(kernels, prepared, lengths, indices)
        price = rate(tokens, seconds)
        slack = SLACK * float(tokens.max() + price * seconds.max())  # rounding
        changed = kernels.improve(prepared.for_kernels, price, slack, lengths, indices, best)
    return lengths, indices, price, rounds
