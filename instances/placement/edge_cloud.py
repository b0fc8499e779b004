"""A family with a nearby edge server, a distant cloud, and drafting servers near the cloud."""

from __future__ import annotations

import numpy as np

from specopt.instances.placement.parts import GIGABYTE, clients, drafter, verifier
from specopt.models.arguments import integer, number
from specopt.models.named import NamedTrips
from specopt.models.placement.problem import DraftPool, PlacementProblem


def edge_cloud(
    *,
    number_of_clients: int = 60,
    cloud_units: int = 2,
    edge_units: int = 1,
    pool_units: int = 1,
    far: float = 0.06,
    near: float = 0.008,
    max_draft: int = 4,
    objective: str = "fair",
    seed: int = 0,
) -> PlacementProblem:
    """Three client classes, served by an edge server, a cloud, and drafting servers near the cloud.

    The classes are phones, laptops, and terminals, which cannot draft.

    Parameters
    ----------
    number_of_clients
        Number of clients, divided among the three classes in the ratio 3 : 2 : 1.
    cloud_units
        Number of verifier units in the cloud.
    edge_units
        Number of verifier units at the edge.
    pool_units
        Number of drafting servers; 0 means that there are none.
    far
        Mean round-trip time to the cloud, in seconds.
    near
        Mean round-trip time to the edge, in seconds.
    max_draft
        Maximum draft length.
    objective
        Objective of the problem. If the objective requires minimum rates, the minimum rate is 10
        tokens per second.
    seed
        Not used; the instance is deterministic.
    """
    total = integer("number_of_clients", number_of_clients, 6)
    names = ["cloud", "edge"]
    pool = "drafting" if integer("pool_units", pool_units, 0) else None
    trips = {"cloud": number("far", far, 0, 60), "edge": number("near", near, 0, 60)}
    rate = 0.0 if objective in ("goodput", "fair") else 10.0
    phones, laptops = total // 2, total // 3
    rates = {"small": 0.65, "heads": 0.75}
    return PlacementProblem(
        verifiers=(
            verifier("cloud", integer("cloud_units", cloud_units, 1), 0.7, price=2.0),
            verifier("edge", integer("edge_units", edge_units, 1), 2.0, 24.0, price=0.8),
        ),
        drafters=(
            drafter("small", 0.6, names, pool=pool),
            drafter("heads", 0.4, names, "parallel"),
        ),
        classes=(
            clients("phones", phones, 500, rates, {"small": 0.02}, trips, rate),
            clients("laptops", laptops, 1000, rates, {"small": 0.006}, trips, rate),
            clients("terminals", total - phones - laptops, 500, rates, {}, trips, rate),
        ),
        max_draft_tokens=integer("max_draft", max_draft, 1, 1000),
        objective=objective,  # type: ignore[arg-type]  # the problem checks it
        draft_pools=(
            DraftPool(
                name=pool,
                units=pool_units,
                memory_bytes=24 * GIGABYTE,
                round_trip_seconds=NamedTrips({"cloud": np.array(0.001)}),
                price_per_second=0.4,
                busy_watts=150.0,
            ),
        )
        if pool
        else (),
    )
