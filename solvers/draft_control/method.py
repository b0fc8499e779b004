"""Code shared by the methods for draft control: the initial plan, the optimal price of a second,
and the certificate of optimality.

The certificate is derived as follows. The next state does not depend on the action, so every policy
has the stationary distribution pi of the chain. For any price rho >= 0, let

    eps = sum over s of pi(s) max over actions of (N(s, a) - rho T(s, a)).

Then E[N] - rho E[T] <= eps for every policy, so that

    E[N] / E[T] <= rho + eps / E[T] <= rho + max(eps, 0) / (sum over s of pi(s) min over actions of
    T(s, a)).

With the optimal rate as the price, eps = 0 up to rounding. Rounding affects pi and the sums, whose
terms all have the same sign. State reduction computes pi without subtractions, with an error of
about S units in the last place of every probability, however rarely the chain changes state. Both
errors are far below the relative tolerance of 1e-9 within which bounds are considered equal.

Relative values would not tighten the bound, because they cancel under pi. If the chain mixes
slowly, relative values are as large as its mean sojourn times, and their rounding errors would
enter the bound.
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
"""Minimum improvement required to replace an action.

The improvement is relative to the largest number of tokens in an iteration plus the largest priced
duration.
"""

MAX_ROUNDS = 1000
"""Limit on the number of rounds.

It is never reached, because the rate converges as in Newton's method.
"""


@dataclass(frozen=True)
class DraftControlMethod(Method):
    """Base class of the methods for `draft-control`."""

    solves = DraftControlProblem
    size_unit = "pairs of state and action"
    bytes_per_part = 50.0

    def size_of(self, problem: DraftControlProblem) -> float:
        """Return the number of (state, action) pairs."""
        return len(problem.states) * actions(problem)

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """Record the plan with the shortest drafts, which is always feasible, and then search."""
        prepared = prepare(problem)
        budget.offer(prepared.plan(first_actions(prepared)))
        budget.check()
        return self.search(prepared, budget)

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Search for a better plan, starting from the feasible plan recorded in the budget."""
        raise NotImplementedError


def actions(problem: DraftControlProblem) -> int:
    """Return the number of actions per state.

    An action is a pair of a resolution and a draft length.
    """
    shortest, longest = problem.draft_lengths
    return len(problem.resolutions) * (longest - shortest + 1)


def first_actions(prepared: Prepared) -> Ints:
    """Return the action with the shortest drafts for every state, with shape (S,)."""
    return np.zeros(prepared.states, np.int64)


def weigh(prepared: Prepared, choice: Ints) -> tuple[Floats, Floats]:
    """Return the expected number of tokens and the expected duration of an iteration in each state.

    `choice` contains the action in each state. Both arrays have shape (S,), and durations are in
    seconds.
    """
    states, (tokens, seconds) = np.arange(prepared.states), prepared.tables
    return tokens[states, choice], seconds[states, choice]


def certify(
    prepared: Prepared,
    choice: Ints,
    budget: Budget,
    price: float | None = None,
    **stats: object,
) -> Outcome:
    """Return the outcome of a policy, with an upper bound on the rate of any policy.

    The bound is valid at any price >= 0. The default price is the optimal rate, at which the bound
    is tight up to rounding. `stats` are additional statistics to report.
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
    """Return a tuple (choice, rate, rounds): the actions of an optimal policy, its rate, and the
    number of rounds.

    This is Dinkelbach's method. The first policy has the shortest drafts. Each later policy uses
    the best action in every state at the previous policy's rate. If `offers` is true, intermediate
    policies are recorded in the budget as well.
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
