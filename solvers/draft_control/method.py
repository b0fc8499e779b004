"""What the methods of draft control share: a plan to start from, the average of a policy, and the certificate.

Certificate. For any price rho and any numbers h(s), let eps be the largest value over recurrent states s of

    max over actions of N(s, a) - rho T(s, a)  +  sum over s' of P(s, s') h(s')  -  h(s),

the violation of the optimality equation. Weigh the inequality "an action's value <= eps" of each state by the
stationary distribution pi of the chain: the h cancel, and E[N] - rho E[T] <= eps for every policy, so that

    E[N] / E[T] <= rho + eps / E[T] <= rho + max(eps, 0) / (sum over s of pi(s) min over actions of T(s, a)).

An optimal policy's own rate and relative values leave eps = 0, to rounding. As the next state does not depend on the
action, the weighted sum of max N - rho T alone may stand for eps, whatever the h: where a chain hardly mixes, relative
values are large and their rounding shows, and the bound is the smaller of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.tables import Tables
from specopt.solvers.method import Method, Outcome

SLACK = 1e-13
"""What an action's value must be better by, of the tokens that an iteration can yield, to replace another."""

MOST_ROUNDS = 1000
"""More are never needed: the rate rises from one to the next, as fast as in Newton's method."""


@dataclass(frozen=True)
class DraftControlMethod(Method):
    """Base of the methods for `draft-control`.

    Class data
    ----------
    one_state
        Whether it takes the static problem alone.
    """

    one_state: ClassVar[bool] = False
    solves: ClassVar[type[DraftControlProblem]] = DraftControlProblem
    size_unit: ClassVar[str] = "pairs of state and action"

    def refusal(self, problem: DraftControlProblem) -> str | None:
        """Return why this method cannot take the problem, or None."""
        if self.one_state and len(problem.states) > 1:
            return f"it has {len(problem.states)} states, the method takes one"
        shortest, longest = problem.draft_lengths
        size = len(problem.states) * len(problem.resolutions) * (longest - shortest + 1)
        if self.max_size is not None and size > self.max_size:
            return f"it has {size:,} {self.size_unit}, the method takes at most {self.max_size:,}"
        return None


def start(problem: DraftControlProblem, budget: Budget) -> Tables:
    """Offer the plan of the shortest drafts, which is always feasible, and return the problem's arrays."""
    tables = Tables.of(problem)
    everywhere = np.zeros(tables.states, dtype=np.int64)
    budget.offer(tables.plan(everywhere + tables.shortest, everywhere))
    budget.check()
    return tables


def weigh(kernels: Any, tables: Tables, lengths: Ints, indices: Ints) -> tuple[Floats, Floats]:
    """Return expected tokens and seconds of a policy's iterations, each of shape (S,)."""
    tokens, seconds = np.empty(tables.states), np.empty(tables.states)
    kernels.weigh(tables.for_kernels, lengths, indices, tokens, seconds)
    return tokens, seconds


def relative_values(tables: Tables, tokens: Floats, seconds: Floats) -> tuple[float, Floats]:
    """Return the rate g of a policy and relative values h: N - g T + P h - h = 0, h = 0 in a recurrent state.

    The system is regular, because the chain has one recurrent class; that it may be periodic does not matter. The
    diagonal counts as one minus the rest of its row, as the judge has it. O(S^3). In a chain that hardly mixes both
    lose digits, down to NaN.
    """
    system = tables.transition.copy()
    np.fill_diagonal(system, 0.0)
    np.fill_diagonal(system, -system.sum(axis=1))  # P - I
    reference = int(tables.recurrent[0])
    system[:, reference] = -seconds  # h is 0 there, so its column is free for the rate
    try:
        unknowns: Floats = np.linalg.solve(system, -tokens).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        unknowns = np.full(tables.states, np.nan)
    rate = float(unknowns[reference])
    unknowns[reference] = 0.0
    return rate, unknowns


def shares_of(kernels: Any, tables: Tables) -> Floats:
    """Return the stationary distribution, shape (S,), O(S^3)."""
    inside = tables.recurrent
    shares = np.zeros(tables.states)
    shares[inside] = kernels.stationary(np.ascontiguousarray(tables.transition[np.ix_(inside, inside)]))
    return shares


def best_values(kernels: Any, tables: Tables, price: float) -> Floats:
    """Return the largest N - price T of each state, shape (S,)."""
    best = np.empty(tables.states)
    actions = np.full(tables.states, tables.shortest), np.zeros(tables.states, dtype=np.int64)
    kernels.improve(tables.for_kernels, price, np.inf, *actions, best)
    return best


def certified(
    kernels: Any, tables: Tables, lengths: Ints, indices: Ints, price: float, values: Floats, budget: Budget,
    **stats: object,
) -> Outcome:  # fmt: skip
    """Return the outcome of a policy, with the bound that a price and relative values prove."""
    plan = tables.plan(lengths, indices)
    budget.offer(plan)
    shares = shares_of(kernels, tables)
    best = best_values(kernels, tables, price)
    if not np.isfinite(values).all():
        values = np.zeros(tables.states)
    drift = tables.transition @ values - values * tables.transition.sum(axis=1)
    violation = float((best + drift)[tables.recurrent].max())
    bound = price + max(0.0, min(violation, float(shares @ best))) / float(shares @ tables.quickest)
    budget.improve_bound(bound)
    tokens, seconds = weigh(kernels, tables, lengths, indices)
    proof = {
        "price": price,
        "largest_violation": violation,
        "tokens_per_iteration": float(shares @ tokens),
        "seconds_per_iteration": float(shares @ seconds),
    }
    return Outcome(plan=plan, bound=bound, stats=proof | stats)


def compared(kernels: Any, tables: Tables, lengths: Ints, indices: Ints, budget: Budget, **stats: object) -> Outcome:
    """Return the outcome of a baseline's policy, with the bound of an optimal policy's price."""
    budget.offer(tables.plan(lengths, indices))
    shares = shares_of(kernels, tables)
    nothing = np.zeros(tables.states, dtype=np.int64)
    *best, price, _ = best_price(kernels, tables, shares, nothing + tables.shortest, nothing, budget)
    _, values = relative_values(tables, *weigh(kernels, tables, *best))
    return certified(kernels, tables, lengths, indices, price, values, budget, **stats)


def best_price(
    kernels: Any, tables: Tables, shares: Floats, lengths: Ints, indices: Ints, budget: Budget
) -> tuple[Ints, Ints, float, int]:
    """Return lengths, resolution indices and rate of an optimal policy, and the rounds that it took from a given one.

    Dinkelbach's method: the rate of a policy is the price at which the next one is best, state by state.
    """
    lengths, indices = lengths.copy(), indices.copy()
    best = np.empty(tables.states)
    rounds = 0
    while True:
        budget.check()
        rounds += 1
        tokens, seconds = weigh(kernels, tables, lengths, indices)
        price = float(shares @ tokens) / float(shares @ seconds)
        slack = rounding(tokens, seconds, price)
        changed = kernels.improve(tables.for_kernels, price, slack, lengths, indices, best)
        if not changed or rounds == MOST_ROUNDS:
            return lengths, indices, price, rounds


def rounding(tokens: Floats, seconds: Floats, price: float) -> float:
    """Return by how much the value of an action must be better to count as better."""
    return SLACK * float(tokens.max() + price * seconds.max())
