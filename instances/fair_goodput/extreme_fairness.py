"""Utilities far from proportional fairness, on clients of very different weights."""

from __future__ import annotations

import numpy as np

from specopt.instances.fair_goodput.paper_5 import acceptance_rates
from specopt.instances.parameters import positive, whole
from specopt.models.fair_goodput import FairGoodputProblem


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
    """Weights log-uniform over a large factor, and a fairness that makes almost only the poorest client count.

    What makes it hard: the utility spans many orders of magnitude, so steps in its scale overshoot and tolerances in
    it say little; at fairness 0 the optimum is a corner instead.

    Parameters
    ----------
    clients
        Number of clients N.
    budget
        Draft tokens C per round.
    rates
        Acceptance rates: "equal", "mild", "wide" or "extreme", in random order.
    fairness
        g of the utility.
    weight_spread
        Weights are log-uniform on 1..weight_spread.
    cap
        Limits of the clients are uniform on 1..cap; 0 stands for none.
    seed
        Seed of `numpy.random.default_rng`.
    """
    rng = np.random.default_rng(seed)
    acceptance = rng.permutation(acceptance_rates(rates, whole("clients", clients, 1)))
    weights = np.exp(np.log(positive("weight_spread", weight_spread)) * rng.uniform(size=clients))
    return FairGoodputProblem(
        name=f"extreme-fairness N={clients} C={budget} {rates} g={fairness:g} seed={seed}",
        acceptance_rates=acceptance,
        budget_tokens=whole("budget", budget, 0),
        weights=weights,
        fairness=fairness,
        max_draft_tokens=rng.integers(1, cap, size=clients, endpoint=True) if whole("cap", cap, 0) else None,
    )
