"""Families (problem generators) for which the water level is hard to find.

The water level is the marginal gain down to which the optimal allocation spends the budget. Each
family is hard for a different reason.
"""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number, random_generator
from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.models.fields import MAX_TOKENS


def capped(
    *, clients: int = 20, share: float = 0.8, most: int = 6, seed: int = 0
) -> DraftAllocationProblem:
    """Clients whose draft limits shrink as their acceptance rates grow.

    The budget is a fraction of the sum of all limits.

    Difficulty: the limits bind for nearly all clients with high acceptance rates. The clients with
    low rates therefore determine the water level, which is far below the level without limits.

    Parameters
    ----------
    clients
        Number of clients N, as in `uniform`.
    seed
        Seed of the random generator, as in `uniform`.
    share
        Budget divided by the sum of all limits. If the quotient is 1 or more, only the limits bind.
    most
        Draft limit of the clients with the lowest acceptance rates.
    """
    rates = random_generator(seed).uniform(
        0.1, 0.95, size=integer("clients", clients, 1, MAX_TOKENS)
    )
    caps = np.maximum(0, np.floor(integer("most", most, 1, MAX_TOKENS) * (1.05 - rates))).astype(
        np.int64
    )
    return DraftAllocationProblem(
        acceptance_rates=rates,
        weights=np.ones(clients),
        budget_tokens=int(number("share", share, 0.0, 100.0) * int(caps.sum())),
        max_draft_tokens=caps,
    )


def one_dominates(
    *, clients: int = 8, budget: int = 1000, distance: float = 1e-3, seed: int = 0
) -> DraftAllocationProblem:
    """One client with an acceptance rate just below 1, and other clients with rates below 0.5.

    Difficulty: the best allocation assigns hundreds of drafts with nearly equal gains to one client
    and a few drafts to each other client. An even split loses most of the objective value, and sums
    of powers suffer from rounding errors.

    Parameters
    ----------
    clients
        Number of clients N, as in `uniform`.
    seed
        Seed of the random generator, as in `uniform`.
    budget
        Number C of draft tokens.
    distance
        One minus the acceptance rate of the first client.
    """
    rng = random_generator(seed)
    rates = rng.uniform(0.05, 0.5, size=integer("clients", clients, 1, MAX_TOKENS))
    rates[0] = 1.0 - number("distance", distance, 1e-9, 1.0)
    return DraftAllocationProblem(
        acceptance_rates=rates,
        weights=rng.uniform(0.5, 2.0, size=clients),
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
    )


def ties(
    *, clients: int = 8, budget: int = 20, acceptance: float = 0.5, groups: int = 1, seed: int = 0
) -> DraftAllocationProblem:
    """Groups of identical clients whose marginal gains coincide exactly, within and across groups.

    Group g has weight a^-g, so draft n + g in group g has the same gain as draft n in group 0.

    Difficulty: the water level equals one of the marginal gains, and most of the budget is spent at
    this level. A method that counts ties incorrectly spends too much or too little.

    Parameters
    ----------
    clients
        Number of clients N.
    budget
        Number C of draft tokens.
    acceptance
        Acceptance rate a of all clients, in (0, 1); powers of 1/2 keep the ties exact.
    groups
        Number of different weights.
    seed
        Not used; the instance is deterministic.
    """
    rate = number("acceptance", acceptance, 1e-3, 0.999)
    group = np.arange(integer("clients", clients, 1, MAX_TOKENS)) % integer(
        "groups", groups, 1, MAX_TOKENS
    )
    return DraftAllocationProblem(
        acceptance_rates=np.full(clients, rate),
        weights=rate ** -group.astype(np.float64),
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
    )
