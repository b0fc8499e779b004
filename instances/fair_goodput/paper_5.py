"""The configurations of paper 5, Table I: clients that draft for one verifier, fairly in the long
run.

The paper does not print its clients' acceptance rates: it draws prompts from eight data sets. Four
sets of evenly spaced rates stand for them here, from equal to extreme.
"""

from __future__ import annotations

import numpy as np

from specopt.instances.draft_allocation.paper_5 import RATES
from specopt.models.arguments import integer, number, one_of
from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import MAX_TOKENS, Floats


def paper_5(
    *, clients: int = 8, budget: int = 20, rates: str = "mild", fairness: float = 1.0, seed: int = 0
) -> FairGoodputProblem:
    """Clients that share a verifier's token budget per round (paper 5, Table I).

    What makes it hard: the fair optimum lies between integer allocations, so no single one attains
    it.

    Parameters
    ----------
    clients, budget
        Number of draft servers N and budget C; Table I has N = 4 with C = 24 and 28, N = 8 with 16
        and 20.
    rates
        Acceptance rates, evenly spaced: "equal" (0.75), "mild" (0.6-0.9), "wide" (0.3-0.95),
        "extreme" (0.05-0.98).
    fairness
        g of the utility; 1 is the paper's.
    seed
        Not used: nothing here is random.
    """
    fairness = number("fairness", fairness, 0)
    return FairGoodputProblem(
        name=f"paper-5 N={clients} C={budget} {rates} g={fairness:g}",
        acceptance_rates=acceptance_rates(rates, integer("clients", clients, 1, MAX_TOKENS)),
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
        fairness=fairness,
    )


def acceptance_rates(name: str, clients: int) -> Floats:
    """Return the evenly spaced acceptance rates of a named set.

    Raises
    ------
    InvalidInput
        If there is no such set.
    """
    return np.linspace(*RATES[one_of("rates", name, RATES)], clients)
