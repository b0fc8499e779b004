"""Shared parts of the methods of draft control: a plan to start from, the price of a second, and
the certificate.

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

from dataclasses import dataclass

import numpy as np

from specopt.models.draft_control.problem import DraftControlProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.prepare import Prepared, prepare
from specopt.solvers.method import Method, Outcome

SLACK = 1e-13
"""An action replaces another if its value is better by this share of the tokens that an iteration
can yield.
"""

MAX_ROUNDS = 1000
"""More are never needed: the rate rises from one to the next, as fast as in Newton's method."""


@dataclass(frozen=True)
class DraftControlMethod(Method):
    """Base of the methods for `draft-control`."""

    solves = DraftControlProblem
    size_unit = "pairs of state and action"
    bytes_per_part = 50.0

    def size_of(self, problem: DraftControlProblem) -> float:
        """Return the number of actions of all states."""
        return len(problem.states) * actions(problem)

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Offer the plan of the shortest drafts, which is always feasible, and search."""
        prepared = prepare(problem)
        budget.offer(prepared.plan(first_actions(prepared)))
        budget.check()
        return self.search(prepared, budget)

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Solve within a budget that has a first plan."""
        raise NotImplementedError


def actions(problem: DraftControlProblem) -> int:
    """Return the number of actions of each state: resolutions times draft lengths."""
    shortest, longest = problem.draft_lengths
    return len(problem.resolutions) * (longest - shortest + 1)


def first_actions(prepared: Prepared) -> Ints:
    """Return the action of the shortest drafts for every state."""
    return np.zeros(prepared.states, np.int64)


def weigh(prepared: Prepared, choice: Ints) -> tuple[Floats, Floats]:
    """Return expected tokens and seconds of a policy's iterations, each of shape (S,)."""
    states, (tokens, seconds) = np.arange(prepared.states), prepared.tables
    return tokens[states, choice], seconds[states, choice]


def certify(
    prepared: Prepared,
    choice: Ints,
    budget: Budget,
    price: float | None = None,
    **stats: object,
) -> Outcome:
    """Return the outcome of a policy with the bound that a price (by default the optimal one)
    proves.
    """
    plan, shares = prepared.plan(choice), prepared.shares
    budget.offer(plan)
    if price is None:
        price = best_price(prepared, budget)[1]
    tokens, seconds = prepared.tables
    violation = float(shares @ (tokens - price * seconds).max(axis=1))
    bound = price + max(0.0, violation) / float(shares @ seconds.min(axis=1))
    budget.improve_bound(bound)
    tokens, seconds = weigh(prepared, choice)
    certificate = {
        "price": price,
        "mean_violation": violation,
        "tokens_per_iteration": float(shares @ tokens),
        "seconds_per_iteration": float(shares @ seconds),
    }
    return Outcome(plan=plan, bound=bound, stats=certificate | stats)


def best_price(
    prepared: Prepared, budget: Budget, *, offers: bool = False
) -> tuple[Ints, float, int]:
    """Return the actions and the rate of an optimal policy, and the rounds that it took.

    Dinkelbach's method: the rate of a policy is the price at which the next one is best, state by
    state; the first one has the shortest drafts. `offers` tells whether the policies on the way are
    offered.
    """
    choice, states = first_actions(prepared), np.arange(prepared.states)
    changed, rounds = True, 0
    while changed and rounds < MAX_ROUNDS:
        if rounds and offers:
            budget.offer(prepared.plan(choice))
        budget.check()
        rounds += 1
        tokens, seconds = weigh(prepared, choice)
        price = float(prepared.shares @ tokens) / float(prepared.shares @ seconds)
        slack = SLACK * float(tokens.max() + price * seconds.max())  # rounding
        values = prepared.tables[0] - price * prepared.tables[1]
        best = values.argmax(axis=1)
        better = values[states, best] > tokens - price * seconds + slack
        changed = bool(better.any())
        choice = np.where(better, best, choice)
    return choice, price, rounds
