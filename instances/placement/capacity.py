"""How many clients are carried at a least rate."""

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
    """Random classes, of which as many as possible are carried at a least rate.

    Parameters
    ----------
    classes, verifiers, drafters, number_of_clients, units, max_draft, seed
        As in `many_classes`.
    least_rate
        Tokens per second that every client gets at least.
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
