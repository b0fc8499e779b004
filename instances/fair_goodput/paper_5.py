"""A family with the configurations of paper 5, Table I, under long-run fairness.

Clients draft for one verifier. The paper draws prompts from eight data sets and does not report the
acceptance rates of its clients. This family uses four sets of evenly spaced rates instead, which
range from equal to extremely different.
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
    """Clients that share the token budget of a verifier in each round (paper 5, Table I).

    Difficulty: the fair optimum lies between integer allocations, so no single allocation attains
    the optimum.

    Parameters
    ----------
    clients
        Number N of draft servers; Table I has 4 and 8.
    budget
        Budget C; Table I has 24 and 28 for N = 4, 16 and 20 for N = 8.
    rates
        Acceptance rates, evenly spaced: "equal" (0.75), "mild" (0.6-0.9), "wide" (0.3-0.95),
        "extreme" (0.05-0.98).
    fairness
        Exponent g of the utility; paper 5 uses 1.
    seed
        Not used; the instance is deterministic.
    """
    return FairGoodputProblem(
        acceptance_rates=acceptance_rates(rates, clients),
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
        fairness=number("fairness", fairness, 0),
    )


def acceptance_rates(name: str, clients: int) -> Floats:
    """Return evenly spaced acceptance rates from a named range, such as "mild".

    Raises
    ------
    InvalidInput
        If no range has this name, or if the number of clients is outside its domain.
    """
    clients = integer("clients", clients, 1, MAX_TOKENS)
    return np.linspace(*RATES[one_of("rates", name, RATES)], clients)
