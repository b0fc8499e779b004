"""Families (problem generators) for which fair rates are hard to find.

Each family is hard for a different reason.
"""

from __future__ import annotations

import numpy as np

from specopt.instances.fair_goodput.paper_5 import acceptance_rates
from specopt.models.acceptance import expected_tokens
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
    """Clients with a wide, log-uniform range of weights, under strong fairness.

    At this fairness, the utility depends almost only on the client with the lowest goodput.

    Difficulty: the utility spans many orders of magnitude, so step sizes and tolerances that are
    defined in terms of the utility are too large or meaningless. At fairness 0, the optimum is a
    corner of the feasible region instead.

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
        Largest draft limit of a client; limits are uniform on 1..cap. 0 means no limits.
    """
    cap = integer("cap", cap, 0, MAX_TOKENS)
    rng = random_generator(seed)
    acceptance = rng.permutation(acceptance_rates(rates, clients))
    weights = np.exp(np.log(positive("weight_spread", weight_spread)) * rng.uniform(size=clients))
    return FairGoodputProblem(
        acceptance_rates=acceptance,
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
        weights=weights,
        fairness=number("fairness", fairness, 0),
        max_draft_tokens=rng.integers(1, cap, size=clients, endpoint=True) if cap else None,
    )


def minimum_rates(
    *,
    clients: int = 8,
    budget: int = 20,
    rates: str = "wide",
    tightness: float = 0.95,
    fairness: float = 0.0,
    seed: int = 0,
) -> FairGoodputProblem:
    """Minimum rates that a random split of most of the budget only just attains.

    Difficulty: the objective favours a few clients, whereas the minimum rates spread the budget
    over all clients. Most minimum rates bind, and the optimum lies in a small corner of the
    feasible region.

    Parameters
    ----------
    clients
        Number of clients N.
    budget
        Draft tokens C per round.
    rates
        Acceptance rates: "equal", "mild", "wide" or "extreme".
    tightness
        Fraction of the budget that the minimum rates require, below 1.
    fairness
        Exponent g of the utility.
    seed
        Seed of `numpy.random.default_rng`.
    """
    rng = random_generator(seed)
    acceptance = acceptance_rates(rates, clients)
    drafts = rng.exponential(size=clients)
    share = number("tightness", tightness, 0.0, 0.999)
    drafts *= share * integer("budget", budget, 0, MAX_TOKENS) / drafts.sum()
    low = np.floor(drafts)
    base = expected_tokens(acceptance, low)
    above = expected_tokens(acceptance, low + 1.0)
    return FairGoodputProblem(
        acceptance_rates=acceptance,
        budget_tokens=budget,
        fairness=number("fairness", fairness, 0),
        min_goodput=(1.0 - 1e-5)
        * (base + (drafts - low) * (above - base)),  # below the attained rate despite rounding
    )


# Synthetic clients range from phones to workstations, on wired and wireless links.
DRAFT_SECONDS_PER_TOKEN = (0.005, 0.040)
NETWORK_SECONDS = (0.005, 0.060)
VERIFY_OVERHEAD_SECONDS = 0.030
VERIFY_SECONDS_PER_TOKEN = 0.0002


def per_second(
    *, clients: int = 8, budget: int = 20, rates: str = "wide", fairness: float = 1.0, seed: int = 0
) -> FairGoodputProblem:
    """Clients that draft at 5 to 40 ms per token and have round trips of 5 to 60 ms.

    The slowest client determines the duration of a round.

    Difficulty: a token for a slow client delays all other clients, so the best rounds differ from
    the rounds with the most tokens, and no single round is fair.

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
    """
    rng = random_generator(seed)
    return FairGoodputProblem(
        acceptance_rates=rng.permutation(acceptance_rates(rates, clients)),
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
        fairness=number("fairness", fairness, 0),
        per="second",
        draft_seconds_per_token=rng.uniform(*DRAFT_SECONDS_PER_TOKEN, size=clients),
        network_seconds=rng.uniform(*NETWORK_SECONDS, size=clients),
        verify_overhead_seconds=VERIFY_OVERHEAD_SECONDS,
        verify_seconds_per_token=VERIFY_SECONDS_PER_TOKEN,
    )
