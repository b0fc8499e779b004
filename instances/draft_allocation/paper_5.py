"""A family with the configurations of paper 5, Table I.

The configurations have four or eight draft servers and the token budgets of one H100. The paper
draws prompts from eight data sets and does not report the acceptance rates of its clients. This
family uses four sets of evenly spaced rates instead, which range from equal to extremely different.
"""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import one_of
from specopt.models.draft_allocation.problem import DraftAllocationProblem

# Table I: budgets C for each number of draft servers; the {6, 20} in the text is a misprint
BUDGETS = {4: (24, 28), 8: (16, 20)}
RATES = {"equal": (0.75, 0.75), "mild": (0.6, 0.9), "wide": (0.3, 0.95), "extreme": (0.05, 0.98)}


def paper_5(
    *, clients: int = 8, budget: int = 20, rates: str = "mild", seed: int = 0
) -> DraftAllocationProblem:
    """One round of a configuration in Table I of paper 5 under proportional fairness.

    The weights are the gradient of the sum of the logarithms of the clients' goodput. The gradient
    is evaluated at the goodput that the even split floor(C / N) attains.

    Parameters
    ----------
    clients
        Number of draft servers: 4 or 8.
    budget
        Budget C: 24 or 28 for four draft servers, 16 or 20 for eight.
    rates
        Acceptance rates, evenly spaced: "equal" (0.75), "mild" (0.6-0.9), "wide" (0.3-0.95),
        "extreme" (0.05-0.98).
    seed
        Not used; the instance is deterministic.
    """
    clients = one_of("clients", clients, BUDGETS)
    budget = one_of("budget", budget, BUDGETS[clients])
    acceptance = np.linspace(*RATES[one_of("rates", rates, RATES)], clients)
    share = budget // clients
    return DraftAllocationProblem(
        acceptance_rates=acceptance,
        weights=(1 - acceptance) / (1 - acceptance ** (share + 1)),
        budget_tokens=budget,
    )
