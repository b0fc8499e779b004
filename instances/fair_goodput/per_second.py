"""Clients of one verifier in real time: drafting, network and verification all take time."""

from __future__ import annotations

from specopt.instances.fair_goodput.paper_5 import acceptance_rates
from specopt.models.arguments import integer, number, random_generator
from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import MAX_TOKENS

# Synthetic clients from phones to workstations, on wired and radio links.
DRAFT_SECONDS_PER_TOKEN = (0.005, 0.040)
NETWORK_SECONDS = (0.005, 0.060)
VERIFY_OVERHEAD_SECONDS = 0.030
VERIFY_SECONDS_PER_TOKEN = 0.0002


def per_second(
    *, clients: int = 8, budget: int = 20, rates: str = "wide", fairness: float = 1.0, seed: int = 0
) -> FairGoodputProblem:
    """Clients that draft at 5 to 40 ms per token with round trips of 5 to 60 ms. The slowest client
    determines the time of a round.

    Difficulty: a token for a slow client delays all others, so the best rounds differ from those
    with the most tokens per round, and no single round is fair.

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
    fairness = number("fairness", fairness, 0)
    rng = random_generator(seed)
    return FairGoodputProblem(
        name=f"per-second N={clients} C={budget} {rates} g={fairness:g} seed={seed}",
        acceptance_rates=rng.permutation(
            acceptance_rates(rates, integer("clients", clients, 1, MAX_TOKENS))
        ),
        budget_tokens=integer("budget", budget, 0, MAX_TOKENS),
        fairness=fairness,
        per="second",
        draft_seconds_per_token=rng.uniform(*DRAFT_SECONDS_PER_TOKEN, size=clients),
        network_seconds=rng.uniform(*NETWORK_SECONDS, size=clients),
        verify_overhead_seconds=VERIFY_OVERHEAD_SECONDS,
        verify_seconds_per_token=VERIFY_SECONDS_PER_TOKEN,
    )
