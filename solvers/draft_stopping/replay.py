"""Replay a plan on recorded rounds: it reads scores until it stops, and yields the tokens accepted
up to then.
"""

from __future__ import annotations

import numpy as np

from specopt.models.draft_stopping.problem import STOP, DraftStoppingPlan, DraftStoppingProblem
from specopt.models.drafting import ACCEPTED
from specopt.models.fields import Floats, Ints


def seconds_of(problem: DraftStoppingProblem, drafted: Ints) -> Floats:
    """Return the seconds of rounds by the tokens drafted in them."""
    return np.asarray(problem.round_by_length[drafted] + problem.draft_seconds_per_token * drafted)


def replay(plan: DraftStoppingPlan, scores: Ints, outcomes: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Return the tokens accepted and drafted in each round; nothing is drawn.

    Parameters
    ----------
    plan
        When to stop.
    scores, outcomes
        Score bin and outcome of every recorded token, round behind round.
    sizes
        Tokens of each round: a plan that would draft more ends there.
    """
    starts = np.cumsum(sizes) - sizes
    node, alive = np.full(len(sizes), plan.start), np.ones(len(sizes), np.bool_)
    accepted, drafted = np.zeros((2, len(sizes)), np.int64)
    for position in range(int(sizes.max())):
        on = np.flatnonzero((node != STOP) & (position < sizes))
        token = starts[on] + position
        alive[on] &= outcomes[token] == ACCEPTED
        accepted[on] += alive[on]
        drafted[on] += 1
        node[on] = plan.next.rows[node[on], scores[token]]
    return accepted, drafted
