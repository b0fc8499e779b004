"""Exact optimal policies, computed by backward recursion over all histories of scores.

The state after a history is the probability mass of the rounds without a rejection, by class, and
the mass of the rounds with a rejection. These masses follow from the scores alone. At a given
price, the best decisions are computed from the longest histories to the shortest. Time and memory
grow with the number of histories.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from specopt.models.draft_stopping.problem import STOP, DraftStoppingPlan
from specopt.models.fields import Floats
from specopt.solvers.draft_stopping.prepare import Automaton, Flags, Prepared, shortest_round
from specopt.solvers.drafting.pieces import CLOSE


def count_histories(bins: int, most: int) -> float:
    """Return the number of histories after which a token can be drafted, 1 + B + ... + B^(L-1).

    Numbers beyond about 2^1000 are returned as infinity.
    """
    if most * math.log2(max(bins, 2)) > 1000.0:
        return math.inf
    return float(sum(bins**t for t in range(most)))


def best_policy(prepared: Prepared, check: Callable[[], None]) -> tuple[DraftStoppingPlan, float]:
    """Return the best policy and an upper bound on the rate of any policy.

    The rate is in tokens per unit of time, where the unit is the duration of a round without
    drafts.

    Parameters
    ----------
    prepared
        Arrays of the problem.
    check
        Function that is called regularly and raises an exception when the time is up.
    """
    gains, masses = forwards(prepared, check)
    price = float(prepared.ratio(*prepared.windows(prepared.none_flagged)).max())
    while True:
        value, accepted, times, goes = _backwards(prepared, gains, masses, price, check)
        found = float(prepared.ratio(accepted, times))
        if not found > price * (1.0 + CLOSE):
            break
        price = found
    return automaton_of(prepared, goes), price + max(0.0, 1.0 + value - price) / min(
        1.0, shortest_round(prepared.times)
    )


def forwards(prepared: Prepared, check: Callable[[], None]) -> tuple[list[Floats], ...]:
    """Return the expected gain from another token and the probability mass of each history.

    Each list contains one array for each number of drafted tokens, with one entry per history.
    """
    scores = prepared.scores
    alive, rejected = prepared.prior[None, :], np.zeros(1)
    gains, masses = [], []
    for t in range(prepared.most):
        check()
        survives = alive * prepared.rates[:, t]
        fails = (alive - survives).sum(axis=1)
        gains.append(survives.sum(axis=1))
        masses.append(alive.sum(axis=1) + rejected)
        rejected = (
            fails[:, None] * scores.first_rejection + rejected[:, None] * scores.after
        ).ravel()
        alive = (survives[:, None, :] * scores.accepted[:, None]).reshape(-1, len(prepared.prior))
    return gains, masses


def _backwards(
    prepared: Prepared,
    gains: list[Floats],
    masses: list[Floats],
    price: float,
    check: Callable[[], None],
) -> tuple[float, np.float64, np.float64, list[Flags]]:
    """Return the best decisions at a price by backward recursion.

    The result is a tuple (value, accepted, time, goes): the value, E[accepted] and E[time] of the
    best policy, and flags of the histories after which this policy drafts. The flags are listed
    from the last token to the first.
    """
    goes: list[Flags] = []
    later = [np.zeros(len(gains[-1])) for _ in range(3)]
    for gain, mass, token in zip(gains[::-1], masses[::-1], prepared.times[::-1], strict=True):
        check()
        time = token * mass
        worth = gain - price * time + later[0]
        goes.append(worth > 0.0)
        best = [np.where(goes[-1], one, 0.0) for one in (worth, gain + later[1], time + later[2])]
        if len(gain) > 1:
            later = [one.reshape(-1, prepared.scores.bins).sum(axis=1) for one in best]
    return float(best[0][0]), best[1][0], best[2][0], goes


def automaton_of(prepared: Prepared, goes: list[Flags]) -> DraftStoppingPlan:
    """Return the plan that drafts another token after the histories that are flagged in `goes`.

    `goes` contains one array of flags per token, from the last token to the first.
    """
    automaton = Automaton()
    nodes = np.full(len(goes[0]) * prepared.scores.bins, STOP)
    for on in goes:
        rows, which = np.unique(
            nodes.reshape(-1, prepared.scores.bins)[on], axis=0, return_inverse=True
        )
        nodes = np.full(len(on), STOP)
        nodes[on] = np.array([automaton.node(tuple(row)) for row in rows.tolist()], np.int64)[
            which.ravel()
        ]
    return automaton.plan(int(nodes[0]))
