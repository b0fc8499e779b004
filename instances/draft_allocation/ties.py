"""Identical clients: every marginal gain ties with many others."""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number
from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.models.fields import MAX_TOKENS


def ties(
    *, clients: int = 8, budget: int = 20, acceptance: float = 0.5, groups: int = 1, seed: int = 0
) -> DraftAllocationProblem:
    """Groups of identical clients whose marginal gains coincide exactly, within and across groups.

    Group g has weight a^-g, so its draft n + g has the gain of draft n of group 0. Difficulty: the
    water level equals one of the marginal gains and most of the budget lies on it. A method that
    counts ties incorrectly spends too much or too little.

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
        name=f"ties N={clients} C={budget} a={acceptance:g} groups={groups}",
        acceptance_rates=np.full(clients, rate),
        weights=rate ** -group.astype(np.float64),
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
    )
