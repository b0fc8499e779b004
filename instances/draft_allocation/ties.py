"""Clients that are all alike: every marginal gain ties with many others."""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number
from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.models.fields import MAX_TOKENS


def ties(
    *, clients: int = 8, budget: int = 20, acceptance: float = 0.5, groups: int = 1, seed: int = 0
) -> DraftAllocationProblem:
    """Groups of equal clients whose marginal gains coincide exactly, within and across groups.

    Group g has weight a^-g, so that its draft n + g gains what draft n of group 0 does. What makes
    it hard: the water level is one of the marginals and most of the budget lies on it; whoever
    counts ties wrongly spends too much or too little.

    Parameters
    ----------
    clients
        Number of clients N.
    budget
        Drafted tokens C.
    acceptance
        Acceptance rate a of all, in (0, 1); powers of 1/2 keep the ties exact.
    groups
        Number of different weights.
    seed
        Not used: nothing here is random.
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
