"""Families with many classes, verifiers and drafters, whose speeds, distances and acceptance rates
are random.
"""

from __future__ import annotations

from specopt.instances.placement.parts import clients, drafter, rounded, verifier
from specopt.models.arguments import integer, number, random_generator
from specopt.models.placement.problem import PlacementProblem


def many_classes(
    *,
    classes: int = 10,
    verifiers: int = 3,
    drafters: int = 4,
    number_of_clients: int = 10_000,
    units: int = 24,
    max_draft: int = 16,
    least_rate: float = 0.0,
    objective: str = "goodput",
    seed: int = 0,
) -> PlacementProblem:
    """Client classes that differ in context, acceptance, device and distance.

    Parameters
    ----------
    classes
        Number of client classes.
    verifiers
        Number of verifiers.
    drafters
        Number of drafters.
    number_of_clients
        Total number of clients, divided evenly among the classes.
    units
        Total number of units, divided evenly among the verifiers.
    max_draft
        Maximum draft length.
    least_rate
        Minimum rate of every client, in tokens per second.
    objective
        Objective of the problem.
    seed
        Seed of `numpy.random.default_rng`.
    """
    rng = random_generator(seed)
    classes = integer("classes", classes, 1, 1000)
    verifiers = integer("verifiers", verifiers, 1, 100)
    least_rate = number("least_rate", least_rate, 0)
    each, more = divmod(integer("units", units, verifiers), verifiers)
    people, rest = divmod(integer("number_of_clients", number_of_clients, classes), classes)
    names = [f"verifier {v}" for v in range(verifiers)]
    machines = tuple(
        verifier(
            name,
            each + (v < more),
            rounded(rng.uniform(0.6, 2.0)),
            141.0,
            rounded(rng.uniform(1.0, 3.0)),
        )
        for v, name in enumerate(names)
    )
    models = tuple(
        drafter(
            f"drafter {d}",
            rounded(rng.uniform(0.3, 2.0)),
            names,
            "parallel" if d % 3 == 2 else "sequential",
        )
        for d in range(integer("drafters", drafters, 0, 100))
    )
    return PlacementProblem(
        verifiers=machines,
        drafters=models,
        classes=tuple(
            clients(
                f"class {c}",
                people + (c < rest),
                # in the order of the draws
                acceptance={one.name: rounded(rng.uniform(0.5, 0.9)) for one in models},
                device={
                    one.name: rounded(rng.uniform(0.004, 0.03))
                    for one in models
                    if rng.random() < 0.8
                },
                trips={
                    name: rounded(rng.choice([0.01, 0.03, 0.08]) * rng.uniform(0.8, 1.2))
                    for name in names
                },
                context=int(rng.choice([250, 500, 1000])),
                weight=float(rng.choice([1.0, 1.0, 2.0])),
                min_rate=least_rate,
            )
            for c in range(classes)
        ),
        max_draft_tokens=integer("max_draft", max_draft, 1, 1000),
        objective=objective,  # type: ignore[arg-type]  # the problem checks it
    )


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
    """Random client classes; the objective is to serve as many clients as possible.

    Every client that is served must reach a minimum rate.

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
        Total number of verifier units, as in `many_classes`.
    max_draft
        Maximum draft length, as in `many_classes`.
    seed
        Seed of the random generator, as in `many_classes`.
    least_rate
        Minimum rate of every served client, in tokens per second.
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
