"""Clients with guaranteed minimum rates that nearly use up the budget."""

from __future__ import annotations

import numpy as np

from specopt.instances.fair_goodput.paper_5 import acceptance_rates
from specopt.models.acceptance import expected_tokens
from specopt.models.arguments import integer, number, random_generator
from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import MAX_TOKENS


def minimum_rates(
    *,
    clients: int = 8,
    budget: int = 20,
    rates: str = "wide",
    tightness: float = 0.95,
    fairness: float = 0.0,
    seed: int = 0,
) -> FairGoodputProblem:
    """Minimum rates that a random split of most of the budget just attains.

    Difficulty: the objective moves the budget to a few clients and the guarantees move it back.
    Most of the guarantees bind, and the optimum lies in a small corner of the feasible region.

    Parameters
    ----------
    clients
        Number of clients N.
    budget
        Draft tokens C per round.
    rates
        Acceptance rates: "equal", "mild", "wide" or "extreme".
    tightness
        Share of the budget that the guarantees use, below 1.
    fairness
        Exponent g of the utility.
    seed
        Seed of `numpy.random.default_rng`.
    """
    tightness = number("tightness", tightness, 0.0, 0.999)
    fairness = number("fairness", fairness, 0)
    rng = random_generator(seed)
    acceptance = acceptance_rates(rates, integer("clients", clients, 1, MAX_TOKENS))
    drafts = rng.exponential(size=clients)
    drafts *= tightness * integer("budget", budget, 0, MAX_TOKENS) / drafts.sum()
    low = np.floor(drafts)
    base = expected_tokens(acceptance, low)
    above = expected_tokens(acceptance, low + 1.0)
    return FairGoodputProblem(
        name=(
            f"minimum-rates N={clients} C={budget} {rates} tightness={tightness:g} g={fairness:g}"
            f" seed={seed}"
        ),
        acceptance_rates=acceptance,
        budget_tokens=budget,
        fairness=fairness,
        min_goodput=(1.0 - 1e-5)
        * (base + (drafts - low) * (above - base)),  # below the attained rate after any rounding
    )
