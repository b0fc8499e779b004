"""The maximum number of clients served at a minimum rate."""

from __future__ import annotations

from specopt.instances.placement.many_classes import many_classes
from specopt.models.arguments import number
from specopt.models.placement.problem import PlacementProblem


def capacity(
    *,
    classes: int = 2,
    verifiers: int = 1,
    drafters: int = 2,
    number_of_clients: int = 100,
    units: int = 2,
    max_draft: int = 5,
    least_rate: float = 30.0,
    seed: int = 0,
) -> PlacementProblem:
    """Random classes; as many clients as possible are served at a minimum rate.

    Parameters
    ----------
    classes
        Number of client classes, as in `many_classes`.
    verifiers
        Number of verifiers, as in `many_classes`.
    drafters
        Number of drafters, as in `many_classes`.
    number_of_clients
        Total number of clients, as in `many_classes`.
    units
        Total number of units of the verifiers, as in `many_classes`.
    max_draft
        Maximum draft length, as in `many_classes`.
    seed
        Seed of the random generator, as in `many_classes`.
    least_rate
        Minimum rate of every client, in tokens per second.
    """
    return many_classes(
        classes=classes,
        verifiers=verifiers,
        drafters=drafters,
        number_of_clients=number_of_clients,
        units=units,
        max_draft=max_draft,
        least_rate=number("least_rate", least_rate, above=0),
        objective="capacity",
        seed=seed,
    )
