"""Building blocks for placement problems.

The functions build pass times for verifiers and drafters, round-trip times, and client classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.named import NamedPasses, NamedRates, NamedSeconds, NamedTrips
from specopt.models.pass_time.pieces import PassPieces
from specopt.models.placement.problem import ClientClass, Drafter, Verifier

GIGABYTE = 1e9

QUANTILES = (np.arange(20) + 0.5) / 20


def spread(seconds: float) -> Any:
    """Return 20 equally likely round-trip times whose mean is `seconds`.

    The times are R (0.9 - 0.1 log(1 - u)), where R is the mean and u is one of 20 quantile levels.

    Examples
    --------
    >>> round(float(spread(1.0).mean()), 2)
    1.0
    """
    return seconds * (0.9 - 0.1 * np.log1p(-QUANTILES))


def passes(weights: float, arithmetic: float, sequence: float, cached: float) -> PassPieces:
    """Return a model for the duration of a pass.

    The duration is the maximum of the time to read the weights and the time to compute the tokens,
    plus terms that grow with the batch.
    """
    return PassPieces(
        np.array(
            [
                [weights, sequence, 0.25 * arithmetic, cached],
                [0.3 * weights, sequence, arithmetic, cached],
            ]
        )
    )


def verifier(
    name: str, units: int, slower: float = 1.0, memory: float = 80.0, price: float = 0.0
) -> Verifier:
    """Return identical verifier units, each with 16 GB of weights.

    A unit reads its weights in 8 ms times `slower`. `memory` is the memory size in gigabytes.
    """
    return Verifier(
        name=name,
        units=units,
        memory_bytes=memory * GIGABYTE,
        weights_bytes=16.0 * GIGABYTE,
        kv_bytes_per_token=131072.0,
        passes=passes(0.008 * slower, 4e-5 * slower, 2e-5 * slower, 2e-8 * slower),
        price_per_second=price,
        idle_watts=120.0,
        busy_watts=650.0,
    )


def drafter(
    name: str, size: float, verifiers: list[str], kind: Any = "sequential", pool: str | None = None
) -> Drafter:
    """Return a drafter that has `size` times as many weights as a reference model.

    A pass of the reference model next to the verifier takes one millisecond.
    """
    own = passes(0.001 * size, 3e-6 * size, 4e-6, 2e-9 * size)
    return Drafter(
        name=name,
        kind=kind,
        weights_bytes=size * GIGABYTE,
        kv_bytes_per_token=12288.0 * size,
        beside=NamedPasses(dict.fromkeys(verifiers, own)),
        server=None if pool is None else NamedPasses({pool: own.scaled(1.5)}),
    )


def clients(
    name: str,
    number: int,
    context: int,
    acceptance: dict[str, float],
    device: dict[str, float],
    trips: dict[str, float],
    min_rate: float = 0.0,
    weight: float = 1.0,
) -> ClientClass:
    """Return a class of clients.

    `device` maps each drafter to the drafting time per token on the client's device, in seconds.
    `trips` maps each verifier to the mean round-trip time between the client and the verifier, in
    seconds.
    """
    return ClientClass(
        name=name,
        clients=number,
        context_tokens=context,
        max_context_tokens=2 * context,
        weight=weight,
        min_tokens_per_second=min_rate,
        acceptance=NamedRates({of: np.array(rate) for of, rate in acceptance.items()}),
        device_seconds_per_token=NamedSeconds(device),
        device_watts=8.0,
        round_trip_seconds=NamedTrips({of: spread(mean) for of, mean in trips.items()}),
    )


def rounded(value: float) -> float:
    """Return a number rounded to four significant digits, which keeps instance files readable."""
    return float(f"{value:.3e}")
