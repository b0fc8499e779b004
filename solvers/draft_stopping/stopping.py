"""Optimal policies based on the belief that no token of the round has been rejected so far.

The acceptance rate may depend on the position of a token. The value of drafting is a piecewise
linear function of the belief. The linear pieces of this function become the nodes of a plan.
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
"""Tolerances of the successive solves, in tokens per round.

A solve may drop a linear piece of a value function if the loss of value is below its tolerance.
Smaller tolerances improve the plan and the bound, but enlarge the plan.
"""


def best_stopping(
    rates: Floats,
    scores: Scores,
    times: Floats,
    check: Callable[[], None],
    *,
    price: float = 1.0,
    worthless: float = WORTHLESS,
) -> tuple[DraftStoppingPlan | None, float, float]:
    """Return a tuple (policy, ratio, bound) for the policy with the best ratio.

    The ratio of a policy is (1 + E[accepted]) / (1 + E[time]), and the bound is an upper bound on
    the ratio of any policy. This is Dinkelbach's method: the ratio of the best policy at a price is
    the next price. The policy is None if it has more nodes than a plan may have.

    Parameters
    ----------
    rates
        Acceptance rate at each position, shape (L,).
    scores
        Distributions of the scores.
    times
        Time that the token at each position adds, relative to a round without drafts, shape (L,).
    check
        Function that is called regularly and raises an exception when the time is up.
    price
        Initial price, which must be the ratio of some policy. Drafting nothing has ratio 1.
    worthless
        Loss of value, in tokens per round, up to which a linear piece of a value function may be
        dropped if there are many pieces.
    """
    while True:
        values, lost = solve_pieces(rates, scores, times, price, worthless, check)
        accepted, time = float(values[0].accepted[-1]), float(values[0].time[-1])
        found = (1.0 + accepted) / (1.0 + time)
        if not found > price * (1.0 + CLOSE):
            break
        price = found
    above = max(0.0, 1.0 - price + accepted - price * time) + lost
    # drafting nothing has ratio 1
    bound = max(1.0, price + above / shortest_round(times))
    return _automaton(rates, scores, values), price, bound


def _automaton(rates: Floats, scores: Scores, values: list[Pieces]) -> DraftStoppingPlan | None:
    """Return the plan whose nodes are the reachable pieces of the value functions.

    The result is None if there are too many nodes.
    """
    needed = [np.array([len(values[0].starts) - 1])]
    goes = []
    for k, rate in enumerate(rates.tolist()):
        drafting = needed[-1][needed[-1] > 0]  # piece 0 means stopping
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
