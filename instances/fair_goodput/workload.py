"""Workloads for `fair-goodput` policies, with constant, drifting or switching acceptance rates."""

from __future__ import annotations

import numpy as np

from specopt.instances.fair_goodput.paper_5 import acceptance_rates
from specopt.models.acceptance_process import AcceptanceProcess
from specopt.models.arguments import integer, number
from specopt.models.fair_goodput.workload import GoodputWorkload
from specopt.models.fields import Floats

MAX_CLIENTS = 10_000


def fixed(
    *, clients: int = 4, budget: int = 24, rates: str = "wide", fairness: float = 1.0
) -> GoodputWorkload:
    """Clients with constant, evenly spaced acceptance rates.

    Parameters
    ----------
    clients
        Number of clients N.
    budget
        Draft tokens C per round.
    rates
        Acceptance rates: "equal" (0.75), "mild" (0.6-0.9), "wide" (0.3-0.95) or "extreme"
        (0.05-0.98).
    fairness
        Exponent g of the utility.
    """
    return GoodputWorkload(
        acceptance_rates(rates, integer("clients", clients, 1, MAX_CLIENTS)), budget, fairness
    )


def random(
    *,
    clients: int = 8,
    budget: int = 20,
    low: float = 0.3,
    high: float = 0.95,
    fairness: float = 1.0,
    seed: int = 0,
) -> GoodputWorkload:
    """Clients with constant acceptance rates drawn from a uniform distribution.

    Parameters
    ----------
    clients
        Number of clients N, as in `fixed`.
    budget
        Draft tokens C per round, as in `fixed`.
    fairness
        Exponent g of the utility, as in `fixed`.
    low
        Lower end of the uniform distribution of acceptance rates.
    high
        Upper end of the uniform distribution of acceptance rates.
    seed
        Seed of `numpy.random.default_rng`.
    """
    ends = _ends(clients, low, high)
    rng = np.random.default_rng(integer("seed", seed, 0))
    return GoodputWorkload(rng.uniform(*ends), budget, fairness)


def drifting(
    *,
    clients: int = 4,
    budget: int = 24,
    low: float = 0.3,
    high: float = 0.9,
    period_rounds: int = 2000,
    fairness: float = 1.0,
) -> GoodputWorkload:
    """Clients whose acceptance rates follow sine waves with different phases.

    Parameters
    ----------
    clients
        Number of clients N, as in `fixed`.
    budget
        Draft tokens C per round, as in `fixed`.
    fairness
        Exponent g of the utility, as in `fixed`.
    low
        Minimum acceptance rate.
    high
        Maximum acceptance rate.
    period_rounds
        Number of rounds in one period of the wave.
    """
    return GoodputWorkload(
        AcceptanceProcess.drifting(*_ends(clients, low, high), period_rounds), budget, fairness
    )


def switching(
    *,
    clients: int = 4,
    budget: int = 24,
    low: float = 0.3,
    high: float = 0.9,
    mean_rounds: float = 100.0,
    fairness: float = 1.0,
) -> GoodputWorkload:
    """Clients that switch independently between a low and a high acceptance rate.

    Parameters
    ----------
    clients
        Number of clients N, as in `fixed`.
    budget
        Draft tokens C per round, as in `fixed`.
    fairness
        Exponent g of the utility, as in `fixed`.
    low
        Low acceptance rate.
    high
        High acceptance rate.
    mean_rounds
        Mean number of rounds between two switches by the same client.
    """
    return GoodputWorkload(
        AcceptanceProcess.switching(_ends(clients, low, high), mean_rounds), budget, fairness
    )


def _ends(clients: int, low: float, high: float) -> tuple[Floats, Floats]:
    """Return arrays with the lowest and the highest acceptance rate of every client."""
    count = integer("clients", clients, 1, MAX_CLIENTS)
    least = number("low", low, 0, below=1)
    return np.full(count, least), np.full(count, number("high", high, least, below=1))
