"""The best policy, by a belief about the round: with the acceptance of each position, or with one rate for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.draft_stopping import MAX_NODES, STOP, DraftStoppingPlan
from specopt.models.drafting import Scores
from specopt.models.fields import Floats
from specopt.models.problem import TOLERANCE
from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.method import DraftStoppingMethod, rule
from specopt.solvers.draft_stopping.prepare import Automaton, Prepared
from specopt.solvers.drafting.pieces import WORTHLESS, Pieces, beliefs_after, best_ratio
from specopt.solvers.method import Outcome

REFINEMENTS = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
"""Tokens of a round that a policy must be worth to be looked at, one solve after the other: plan and bound get better,
and the plan gets larger."""


def best_stopping(
    rates: Floats,
    scores: Scores,
    cost: float,
    check: Callable[[], None],
    *,
    price: float = 1.0,
    worthless: float = WORTHLESS,
) -> tuple[DraftStoppingPlan | None, float, float]:
    """Return the policy with the best ratio (1 + E[accepted]) / (1 + cost E[drafted]), its ratio, and a bound on all.

    A policy of more nodes than a plan may have is None.

    `rates` are by position, shape (L,), `cost` is the drafting time of a token in rounds; `check` is called now and
    then and raises when there is no time left. `price` is a ratio that some policy has; that of drafting nothing is 1.
    Where there are many policies, one must be worth `worthless` tokens of a round to be looked at.
    """
    best = best_ratio(rates, scores, cost, price, worthless, check)
    above = max(0.0, 1.0 - best.price + best.accepted - best.price * cost * best.drafted) + best.lost
    # a plan that drafts takes a token's time at least; one that does not has ratio 1
    return _automaton(rates, scores, best.values), best.price, max(1.0, best.price + above / (1.0 + cost))


def _automaton(rates: Floats, scores: Scores, values: list[Pieces]) -> DraftStoppingPlan | None:
    """Return the plan whose nodes are the pieces that can be come to, unless they are too many."""
    needed = [np.array([len(values[0].starts) - 1])]
    goes = []
    for k, rate in enumerate(rates.tolist()):
        drafting = needed[-1][needed[-1] > 0]  # piece 0 is to stop
        inside = values[k].inside[drafting]
        goes.append(values[k + 1].at(np.array([beliefs_after(scores, s, rate, inside) for s in range(scores.bins)])).T)
        needed.append(np.unique(goes[-1]))
    if sum(len(rows) for rows in goes) > MAX_NODES:
        return None
    automaton, numbers = Automaton(), {0: STOP}
    for k in range(len(rates) - 1, -1, -1):
        drafting = needed[k][needed[k] > 0].tolist()
        rows = [tuple(numbers[piece] for piece in row) for row in goes[k].tolist()]
        numbers = {0: STOP} | {piece: automaton.node(row) for piece, row in zip(drafting, rows, strict=True)}
    return automaton.plan(numbers[int(needed[0][0])])


@dataclass(frozen=True)
class Belief(DraftStoppingMethod):
    """Optimal stopping by the belief that no token was rejected so far, with each position's own acceptance.

    The class of the round need not be believed in: scores depend on it only through what becomes of the tokens. While
    all are accepted, the scores say nothing of the class that their number does not say, so that the acceptance of the
    rounds that get to a position, averaged over their classes, is all that counts.
    """

    name: ClassVar[str] = "belief"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own"
    guarantee: ClassVar[str] = "optimal; with many scores and tokens within the gap that it reports"
    complexity: ClassVar[str] = "O(L B P log P) a price, for P pieces of the value"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Solve backwards at rising prices."""
        price = 1.0
        for worthless in REFINEMENTS:
            plan, price, most = best_stopping(
                prepared.averaged, prepared.scores, prepared.cost, budget.check, price=price, worthless=worthless
            )
            if plan is None:
                break
            budget.offer(plan)
            budget.improve_bound(most / prepared.seconds)
            if budget.bound <= budget.objective * (1.0 + max(budget.gap, 0.5 * TOLERANCE)):  # type: ignore[operator]
                break
        return Outcome(plan=budget.incumbent, bound=budget.bound)


@dataclass(frozen=True)
class OptimalStopping(DraftStoppingMethod):
    """The best policy for independent acceptance at the mean rate, as Eq. 7 of paper 1 has it.

    Where rounds are easy or hard, those that get far are easy: it stops too early in them.
    """

    name: ClassVar[str] = "optimal-stopping"
    source: ClassVar[str] = "own"
    guarantee: ClassVar[str] = "optimal for one class with one rate; otherwise none: may be slower than a fixed window"
    complexity: ClassVar[str] = "as belief"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Solve backwards at rising prices, with one rate."""
        rates = np.full(prepared.most, prepared.mean_rate)
        plan, _, _ = best_stopping(rates, prepared.scores, prepared.cost, budget.check)
        return Outcome(plan=budget.incumbent, bound=budget.bound) if plan is None else rule(plan, budget)
