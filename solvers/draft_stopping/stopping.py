"""The best policy based on a belief about the round, with one acceptance rate per position or one
for all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specopt.models.draft_stopping.problem import MAX_NODES, STOP, DraftStoppingPlan
from specopt.models.drafting import Scores
from specopt.models.fields import Floats
from specopt.solvers.draft_stopping.prepare import Automaton, shortest_round
from specopt.solvers.drafting.pieces import CLOSE, WORTHLESS, Pieces, beliefs_after, solve_pieces

REFINEMENTS = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
"""Tokens of a round that a policy must be worth to be looked at, one solve after the other: plan
and bound get better, and the plan gets larger."""


def best_stopping(
    rates: Floats,
    scores: Scores,
    times: Floats,
    check: Callable[[], None],
    *,
    price: float = 1.0,
    worthless: float = WORTHLESS,
) -> tuple[DraftStoppingPlan | None, float, float]:
    """Return the policy with the best ratio (1 + E[accepted]) / (1 + E[time]), its ratio, and a
    bound on all, by Dinkelbach's method: the ratio of the best policy at a price is the next price.

    A policy of more nodes than a plan may have is None.

    `rates` and `times` are by position, shape (L,), times in rounds without drafts; `check` is
    called now and then and raises when there is no time left. `price` is a ratio that some policy
    has; that of drafting nothing is 1. Where there are many policies, one must be worth `worthless`
    tokens of a round to be looked at.
    """
    while True:
        values, lost = solve_pieces(rates, scores, times, price, worthless, check)
        accepted, time = float(values[0].accepted[-1]), float(values[0].time[-1])
        found = (1.0 + accepted) / (1.0 + time)
        if not found > price * (1.0 + CLOSE):
            break
        price = found
    above = max(0.0, 1.0 - price + accepted - price * time) + lost
    # a plan that does not draft has ratio 1
    bound = max(1.0, price + above / shortest_round(times))
    return _automaton(rates, scores, values), price, bound


def _automaton(rates: Floats, scores: Scores, values: list[Pieces]) -> DraftStoppingPlan | None:
    """Return the plan whose nodes are the pieces that can be come to, unless they are too many."""
    needed = [np.array([len(values[0].starts) - 1])]
    goes = []
    for k, rate in enumerate(rates.tolist()):
        drafting = needed[-1][needed[-1] > 0]  # piece 0 is to stop
        inside = values[k].inside[drafting]
        goes.append(
            values[k + 1]
            .at(np.array([beliefs_after(scores, s, rate, inside) for s in range(scores.bins)]))
            .T
        )
        needed.append(np.unique(goes[-1]))
    if sum(len(rows) for rows in goes) > MAX_NODES:
        return None
    automaton, numbers = Automaton(), {0: STOP}
    for k in range(len(rates) - 1, -1, -1):
        drafting = needed[k][needed[k] > 0].tolist()
        rows = [tuple(numbers[piece] for piece in row) for row in goes[k].tolist()]
        numbers = {0: STOP} | {
            piece: automaton.node(row) for piece, row in zip(drafting, rows, strict=True)
        }
    return automaton.plan(numbers[int(needed[0][0])])
