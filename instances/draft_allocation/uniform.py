"""Clients of random acceptance rates and weights, of any number and for any budget."""

from __future__ import annotations

import math

import numpy as np

from specopt.models.draft_allocation import DraftAllocationProblem
from specopt.models.errors import InvalidInput


def uniform(
    *,
    clients: int = 8,
    budget: int = 20,
    min_acceptance: float = 0.3,
    max_acceptance: float = 0.95,
    weight_spread: float = 4.0,
    cap: int = 0,
    seed: int = 0,
) -> DraftAllocationProblem:
    """Clients with uniform acceptance rates and weights that differ by a factor.

    Parameters
    ----------
    clients
        Number of clients N.
    budget
        Drafted tokens C that the server verifies in one round.
    min_acceptance, max_acceptance
        Acceptance rates are uniform between these.
    weight_spread
        Weights are log-uniform on 1..weight_spread: under proportional fairness a client's weight is one over its
        goodput.
    cap
        Limits of the clients are uniform on 1..cap; 0 stands for none.
    seed
        Seed of `numpy.random.default_rng`.
    """
    for name, value, least in (("clients", clients, 1), ("budget", budget, 0), ("cap", cap, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidInput(f"{name}: expected an integer >= {least}, got {value!r}")
    if not 0 <= min_acceptance <= max_acceptance < 1:
        raise InvalidInput(
            f"min_acceptance, max_acceptance: expected 0 <= min <= max < 1, got {min_acceptance} and {max_acceptance}"
        )
    if not 1 <= weight_spread < math.inf:
        raise InvalidInput(f"weight_spread: expected a finite number >= 1, got {weight_spread}")
    rng = np.random.default_rng(seed)
    rates = min_acceptance + (max_acceptance - min_acceptance) * rng.uniform(size=clients)
    weights = weight_spread ** rng.uniform(size=clients)
    return DraftAllocationProblem(
        name=f"uniform N={clients} C={budget} a={min_acceptance:g}..{max_acceptance:g} seed={seed}",
        acceptance_rates=rates,
        weights=weights,
        budget_tokens=budget,
        max_draft_tokens=rng.integers(1, cap, size=clients, endpoint=True) if cap else None,
    )
