"""What the methods of draft control share: a plan to start from, the average of a policy, and the certificate.

Certificate. For any price rho and any numbers h(s), let eps be the largest value over recurrent states s of

    max over actions of N(s, a) - rho T(s, a)  +  sum over s' of P(s, s') h(s')  -  h(s),

the violation of the optimality equation. Weigh the inequality "an action's value <= eps" of each state by the
stationary distribution of the chain: the h cancel, and E[N] - rho E[T] <= eps for every policy, so that

    E[N] / E[T] <= rho + eps / E[T] <= rho + max(eps, 0) / (seconds of the quickest iteration).

An optimal policy's own rate and relative values leave eps = 0, to rounding.
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


@dataclass(frozen=True)
class DraftControlMethod(Method):
    """Base of the methods for `draft-control`."""

    solves: ClassVar[type[DraftControlProblem]] = DraftControlProblem
    size_unit: ClassVar[str] = "pairs of state and action"

    def refusal(self, problem: DraftControlProblem) -> str | None:
        """Return why this method cannot take the problem, or None."""
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
    kernels.weigh(*tables.arrays, lengths, indices, tokens, seconds)
    return tokens, seconds


def relative_values(tables: Tables, tokens: Floats, seconds: Floats) -> tuple[float, Floats]:
    """Return the rate g of a policy and relative values h: N - g T + P h - h = 0, h = 0 in a recurrent state.

    The system is regular, because the chain has one recurrent class; that it may be periodic does not matter. The
    diagonal counts as one minus the rest of its row, as the judge has it. O(S^3).
    """
    system = tables.transition.copy()
    np.fill_diagonal(system, 0.0)
    np.fill_diagonal(system, -system.sum(axis=1))  # P - I
    reference = int(tables.recurrent[0])
    system[:, reference] = -seconds  # h is 0 there, so its column is free for the rate
    unknowns: Floats = np.linalg.solve(system, -tokens)
    rate = float(unknowns[reference])
    unknowns[reference] = 0.0
    return rate, unknowns


def certify(kernels: Any, tables: Tables, price: float, values: Floats) -> tuple[float, float]:
    """Return the bound that a price and relative values prove, and the largest violation behind it."""
    best = np.empty(tables.states)
    actions = np.full(tables.states, tables.shortest), np.zeros(tables.states, dtype=np.int64)
    kernels.improve(*tables.arrays, tables.shortest, tables.longest, price, np.inf, *actions, best)
    drift = tables.transition @ values - values * tables.transition.sum(axis=1)
    violation = float((best + drift)[tables.recurrent].max())
    return price + max(violation, 0.0) / tables.quickest, violation


def certified(
    kernels: Any, tables: Tables, lengths: Ints, indices: Ints, price: float, values: Floats, budget: Budget,
    **stats: object,
) -> Outcome:  # fmt: skip
    """Return the outcome of a policy, with the bound that a price and relative values prove."""
    plan = tables.plan(lengths, indices)
    budget.offer(plan)
    bound, violation = certify(kernels, tables, price, values)
    budget.improve_bound(bound)
    proof = {"price": price, "largest_violation": violation}
    return Outcome(plan=plan, bound=bound, stats=proof | stats)
