"""Complete tables of throughput, drawn at random: a law of acceptance, a staircase of step times, an idle cost."""

from __future__ import annotations

import numpy as np

from specopt.models.sweep import Condition, Measurement, Point, Sweep

CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64)
OPTIONS = (None, *range(8))


def random_table(seed: int) -> dict[Point, Measurement]:
    """Return the throughput of every option at every concurrency of an engine of our own invention."""
    rng = np.random.default_rng(seed)
    acceptance = np.cumprod(rng.uniform(0.3, 0.9) * rng.uniform(0.9, 1.0) ** np.arange(7))
    base, slope = rng.uniform(5e-3, 3e-2), rng.uniform(0.002, 0.03)
    jump, edge, captured = rng.uniform(0.0, 0.4), rng.choice([32, 64, 128, 256]), rng.random() < 0.5
    draft, idle = rng.uniform(0.02, 0.2), rng.uniform(0.0, 0.1)

    def verify(tokens: int) -> float:
        padded = 2.0 ** np.ceil(np.log2(tokens)) if captured else float(tokens)
        return float(base * (1.0 + slope * padded + jump * (tokens > edge)))

    table = {}
    for concurrency in CONCURRENCIES:
        for option in OPTIONS:
            length = option or 0
            tokens = 1.0 + float(acceptance[:length].sum())
            seconds = verify(concurrency * (1 + length))
            if option is not None:
                seconds += base * (length * draft * (1.0 + 0.005 * concurrency) + idle)
            point = Point(Condition(concurrency), option)
            table[point] = Measurement(point, concurrency * tokens / seconds, tokens if length else None)
    return table


def sweep_of(table: dict[Point, Measurement], options: tuple[int | None, ...] = OPTIONS) -> Sweep:
    """Return the measurements of some options at every concurrency."""
    return Sweep(tuple(found for point, found in table.items() if point.draft_length in options))
