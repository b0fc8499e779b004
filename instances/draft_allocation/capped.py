"""Clients with tight limits on the drafts that they would use best."""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number, random_generator
from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.models.fields import MAX_TOKENS


def capped(
    *, clients: int = 20, share: float = 0.8, most: int = 6, seed: int = 0
) -> DraftAllocationProblem:
    """Clients whose draft limits shrink as their acceptance rates grow. The budget is a share of
    the sum of all limits.

    Difficulty: nearly every limit of a client with a high acceptance rate binds. The water level is
    therefore set by the clients with low rates, far below the level without limits.

    Parameters
    ----------
    clients
        Number of clients N, as in `uniform`.
    seed
        Seed of the random generator, as in `uniform`.
    share
        Budget divided by the sum of all limits; at 1 and above, only the limits bind.
    most
        Limit of the clients with the lowest acceptance rates.
    """
    share = number("share", share, 0.0, 100.0)
    rates = random_generator(seed).uniform(
        0.1, 0.95, size=integer("clients", clients, 1, MAX_TOKENS)
    )
    caps = np.maximum(0, np.floor(integer("most", most, 1, MAX_TOKENS) * (1.05 - rates))).astype(
        np.int64
    )
    return DraftAllocationProblem(
        name=f"capped N={clients} share={share:g} caps<={most} seed={seed}",
        acceptance_rates=rates,
        weights=np.ones(clients),
        budget_tokens=int(share * int(caps.sum())),
        max_draft_tokens=caps,
    )
