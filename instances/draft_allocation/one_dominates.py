"""One client whose drafts are nearly always accepted, among many with low acceptance rates."""

from __future__ import annotations

from specopt.models.arguments import integer, number, random_generator
from specopt.models.draft_allocation.problem import DraftAllocationProblem
from specopt.models.fields import MAX_TOKENS


def one_dominates(
    *, clients: int = 8, budget: int = 1000, distance: float = 1e-3, seed: int = 0
) -> DraftAllocationProblem:
    """One client with an acceptance rate just below 1; those of the others are below 0.5.

    Difficulty: the best allocation gives one client hundreds of drafts whose gains hardly differ,
    and a few to each of the others. An even split loses most of the objective, and sums of powers
    lose digits.

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
        name=f"one-dominates N={clients} C={budget} 1-a={distance:g} seed={seed}",
        acceptance_rates=rates,
        weights=rng.uniform(0.5, 2.0, size=clients),
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
    )
