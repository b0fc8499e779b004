"""A family with one class of clients.

Drafts are generated on the device, next to the verifier, or not at all.
"""

from __future__ import annotations

from specopt.instances.placement.parts import clients, drafter, verifier
from specopt.models.arguments import integer, number, random_generator
from specopt.models.placement.problem import PlacementProblem


def one_class(
    *,
    number_of_clients: int = 20,
    units: int = 1,
    round_trip: float = 0.03,
    acceptance: float = 0.75,
    device_seconds: float = 0.012,
    max_draft: int = 5,
    objective: str = "goodput",
    seed: int = 0,
) -> PlacementProblem:
    """One class of clients with one verifier and one drafter.

    Parameters
    ----------
    number_of_clients
        Number of clients.
    units
        Number of verifier units.
    round_trip
        Mean round-trip time, in seconds.
    acceptance
        Acceptance rate at every position.
    device_seconds
        Drafting time per token on the device, in seconds.
    max_draft
        Maximum draft length.
    objective
        Objective of the problem. If the objective requires minimum rates, the minimum rate is 20
        tokens per second.
    seed
        Seed of the random changes to round-trip time, acceptance rate and device time, which are
        at most 10 %. With seed 0, nothing is changed.
    """
    rng = random_generator(seed)
    factors = (1.0 + 0.1 * (2.0 * rng.random(3) - 1.0)).tolist() if seed else [1.0] * 3
    trip = number("round_trip", round_trip, 0, 60) * factors[0]
    rate = min(1.0, number("acceptance", acceptance, 0, 1) * factors[1])
    device = number("device_seconds", device_seconds, 0, 60) * factors[2]
    min_rate = 0.0 if objective in ("goodput", "fair") else 20.0
    return PlacementProblem(
        verifiers=(verifier("verifier", integer("units", units, 1), price=1.0),),
        drafters=(drafter("small", 1.0, ["verifier"]),),
        classes=(
            clients(
                "chat",
                integer("number_of_clients", number_of_clients, 1),
                1000,
                {"small": rate},
                {"small": device},
                {"verifier": trip},
                min_rate,
            ),
        ),
        max_draft_tokens=integer("max_draft", max_draft, 1, 1000),
        objective=objective,  # type: ignore[arg-type]  # the problem checks it
    )
