"""Clients that may not draft what they deserve."""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number, random_generator
from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.models.fields import MAX_TOKENS


def capped(
    *, clients: int = 20, share: float = 0.8, most: int = 6, seed: int = 0
) -> DraftAllocationProblem:
    """The better a client's drafts are accepted, the fewer it may draft; the budget is a share of
    all limits.

    What makes it hard: nearly every limit of a good client binds, so the water level is set by the
    poor ones, far below what it is without limits.

    Parameters
    ----------
    clients, seed
        As in `uniform`.
    share
        Budget over the sum of all limits; from 1 on the limits bind alone.
    most
        Limit of the clients whose drafts are accepted least.
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
