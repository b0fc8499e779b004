"""A family of clients with random acceptance rates and weights, for any budget."""

from __future__ import annotations

from specopt.models.arguments import integer, number, random_generator
from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.models.fields import MAX_BUDGET, MAX_TOKENS


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
    """Clients with uniform acceptance rates and log-uniform weights.

    Parameters
    ----------
    clients
        Number of clients N.
    budget
        Number C of draft tokens that the server verifies in one round.
    min_acceptance
        Lower end of the uniform distribution of acceptance rates.
    max_acceptance
        Upper end of the uniform distribution of acceptance rates.
    weight_spread
        Ratio of the largest to the smallest possible weight; weights are log-uniform on
        1..weight_spread. Under proportional fairness, a client's weight is the reciprocal of the
        client's goodput.
    cap
        Largest draft limit of a client; limits are uniform on 1..cap. 0 means no limits.
    seed
        Seed of `numpy.random.default_rng`.
    """
    clients = integer("clients", clients, 1, MAX_TOKENS)
    cap = integer("cap", cap, 0, MAX_TOKENS)
    min_acceptance = number("min_acceptance", min_acceptance, 0, below=1)
    max_acceptance = number("max_acceptance", max_acceptance, min_acceptance, below=1)
    rng = random_generator(seed)
    rates = min_acceptance + (max_acceptance - min_acceptance) * rng.uniform(size=clients)
    weights = number("weight_spread", weight_spread, 1) ** rng.uniform(size=clients)
    return DraftAllocationProblem(
        acceptance_rates=rates,
        weights=weights,
        budget_tokens=integer("budget", budget, 0, MAX_BUDGET),
        max_draft_tokens=rng.integers(1, cap, size=clients, endpoint=True) if cap else None,
    )
