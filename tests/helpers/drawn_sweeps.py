"""Complete tables of an engine that does not exist: to see what a tuner asks, and what its answer
loses.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from specopt.models.sweep import Condition, Measurement, Point, Sweep

CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64)
OPTIONS = (None, *range(8))


def drawn_table(seed: int) -> dict[Point, Measurement]:
    """Return the throughput of every option at every concurrency: a law of acceptance, a staircase,
    an idle cost.
    """
    rng = np.random.default_rng(seed)
    acceptance = np.cumprod(
        rng.uniform(0.3, 0.9) * rng.uniform(0.9, 1.0) ** np.arange(OPTIONS[-1] or 0)
    )
    base, slope = rng.uniform(5e-3, 3e-2), rng.uniform(0.002, 0.03)
    jump, edge, captured = rng.uniform(0.0, 0.4), rng.choice([32, 64, 128, 256]), rng.random() < 0.5
    draft, idle = rng.uniform(0.02, 0.2), rng.uniform(0.0, 0.1)
    table = {}
    for concurrency in CONCURRENCIES:
        for option in OPTIONS:
            length = option or 0
            batch = concurrency * (1 + length)
            padded = 2.0 ** np.ceil(np.log2(batch)) if captured else float(batch)
            seconds = base * (1.0 + slope * padded + jump * (batch > edge))
            if option is not None:
                seconds += base * (length * draft * (1.0 + 0.005 * concurrency) + idle)
            tokens = 1.0 + float(acceptance[:length].sum())
            point = Point(Condition(concurrency), option)
            table[point] = Measurement(
                point, float(concurrency * tokens / seconds), tokens if length else None
            )
    return table


def sweep_of(table: dict[Point, Measurement], options: Collection[int | None] = OPTIONS) -> Sweep:
    """Return the measurements of some options at every concurrency."""
    return Sweep(tuple(found for point, found in table.items() if point.draft_length in options))
