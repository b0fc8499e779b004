"""Utilities far from proportional fairness, on clients of very different weights."""

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
    """Weights log-uniform over a large factor, and a fairness that makes almost only the poorest
    client count.

    What makes it hard: the utility spans many orders of magnitude, so steps in its scale overshoot
    and tolerances in it say little; at fairness 0 the optimum is a corner instead.

    Parameters
    ----------
    clients, budget, fairness, seed
        As in `minimum_rates`.
    rates
        Acceptance rates: "equal", "mild", "wide" or "extreme", in random order.
    weight_spread
        Weights are log-uniform on 1..weight_spread.
    cap
        Limits of the clients are uniform on 1..cap; 0 stands for none.
    """
    fairness, cap = number("fairness", fairness, 0), integer("cap", cap, 0, MAX_TOKENS)
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
