"""Utilities far from proportional fairness, for clients with very different weights."""

from __future__ import annotations

import numpy as np

from specopt.instances.fair_goodput.paper_5 import acceptance_rates
from specopt.models.arguments import integer, number, positive, random_generator
from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import MAX_TOKENS


def extreme_fairness(
    *,
    clients: int = 8,
    budget: int = 20,
    rates: str = "extreme",
    fairness: float = 20.0,
    weight_spread: float = 100.0,
    cap: int = 0,
    seed: int = 0,
) -> FairGoodputProblem:
    """Log-uniform weights over a large factor, and a fairness at which the utility depends almost
    only on the client with the lowest goodput.

    Difficulty: the utility spans many orders of magnitude, so steps in its scale overshoot and
    tolerances in it mean little. At fairness 0 the optimum is a corner instead.

    Parameters
    ----------
    clients
        Number of clients N, as in `minimum_rates`.
    budget
        Draft tokens C per round, as in `minimum_rates`.
    fairness
        Exponent g of the utility, as in `minimum_rates`.
    seed
        Seed of the random generator, as in `minimum_rates`.
    rates
        Acceptance rates: "equal", "mild", "wide" or "extreme", in random order.
    weight_spread
        Ratio of the largest to the smallest possible weight; weights are log-uniform on
        1..weight_spread.
    cap
        Largest limit of a client; limits are uniform on 1..cap. 0 means no limits.
    """
    fairness = number("fairness", fairness, 0)
    cap = integer("cap", cap, 0, MAX_TOKENS)
    rng = random_generator(seed)
    acceptance = rng.permutation(
        acceptance_rates(rates, integer("clients", clients, 1, MAX_TOKENS))
    )
    weights = np.exp(np.log(positive("weight_spread", weight_spread)) * rng.uniform(size=clients))
    return FairGoodputProblem(
        name=f"extreme-fairness N={clients} C={budget} {rates} g={fairness:g} seed={seed}",
        acceptance_rates=acceptance,
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
        weights=weights,
        fairness=fairness,
        max_draft_tokens=rng.integers(1, cap, size=clients, endpoint=True) if cap else None,
    )
