"""Replays of a plan on recorded rounds.

The plan reads the recorded scores until it stops drafting. The accepted tokens among those drafted
up to that point are counted.
"""

from __future__ import annotations

import numpy as np

from specopt.models.draft_stopping.problem import STOP, DraftStoppingPlan, DraftStoppingProblem
from specopt.models.drafting import ACCEPTED
from specopt.models.fields import Floats, Ints


def seconds_of(problem: DraftStoppingProblem, drafted: Ints) -> Floats:
    """Return the duration of each round, in seconds, given the number of tokens drafted in it."""
    return np.asarray(problem.round_by_length[drafted] + problem.draft_seconds_per_token * drafted)


def replay(plan: DraftStoppingPlan, scores: Ints, outcomes: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of accepted and drafted tokens in each round.

    The replay is deterministic.

    Parameters
    ----------
    plan
        Plan that decides when to stop drafting.
    scores, outcomes
        Score bin and outcome of every recorded token, ordered by round and position.
    sizes
        Number of recorded tokens in each round. Drafting ends after the last recorded token at the
        latest.
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
