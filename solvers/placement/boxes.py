"""Boxes, in which upper bounds on the value of a unit are computed.

A box is a range of periods, or of waits and loads, at which a unit runs. The period is the duration
of a pass. The load is the fraction of time in which the unit would be busy if every pass served
only one client; it may exceed 1.

Within a box, the load and the cycle of every option are bounded, and the value of a pattern is
bounded by a linear program. If batches are full (the unit is always busy), a box is a range of
periods from `low` to `high`. A client joins one of every n passes, where n lies between its values
at the two ends of the range. Otherwise, a box is a range of summed waits for the passes of other
clients, together with a range of loads. Every pattern is feasible in the linear program of the box
in which it runs, and that program does not underestimate the pattern's value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from specopt.solvers.placement.patterns import most_clients
from specopt.solvers.placement.prepare import Prepared, Side

RATIO = 1.3
"""Ratio of the upper to the lower end of the initial boxes.

Wider boxes yield weaker bounds. Narrower boxes increase the running time.
"""

LOADS = (0.0, 1.0, 1.2, 1.6, 2.5, 5.0, 1e300)
"""Boundaries of the initial ranges of loads. At a load above 1, nearly all batches are full."""

Ends = tuple[bool, float, float, float, float]


@dataclass(frozen=True)
class Cover:
    """Boxes that together contain every pattern of one side.

    A side is a verifier with the drafter next to it (see `Side`).

    Parameters
    ----------
    side
        Index of the side.
    boxes
        Kernel records of the boxes.
    base
        Minimum time between two passes of the same client, without waits, in seconds.
    floor
        Minimum duration of a pass, in seconds.
    """

    side: int
    boxes: np.ndarray[Any, Any]
    base: float
    floor: float


def covers(prepared: Prepared) -> Iterator[Cover]:
    """Yield the boxes of every side whose units can serve at least one client."""
    most = most_clients(prepared)
    for index, side in enumerate(prepared.sides):
        fits = int(
            max(-1.0, side.unit.room * (1.0 + 1e-9) / (side.unit.kv * side.options["memory"].min()))
        )
        fits = min(fits, sum(of for c, of in enumerate(most) if side.by_class[c]))
        if fits < 1:
            continue
        low, high = _pass_ends(side, fits)
        if (side.options["least"] > 0.0).all():
            high = min(
                high, float((side.options["tokens"] / side.options["least"]).max()) * (1.0 + 1e-9)
            )
        boxes = [(True, *ends, 0.0, 0.0) for ends in _steps(low, max(high, low * (1.0 + 1e-9)))]
        base = low
        if side.drafter >= 0:  # only one client alone leaves batches that are not full
            boxes.append((False, 0.0, 1e300, 0.0, 1.0))
        else:
            base, light = _light(prepared, side, low)
            boxes += light
        yield Cover(index, np.array(boxes, prepared.kernels.Box), base, low)


def _steps(low: float, high: float) -> list[tuple[float, float]]:
    edges = np.geomspace(low, high, 2 + int(math.log(high / low) / math.log(RATIO))).tolist()
    return list(pairwise(edges))


def _pass_ends(side: Side, fits: int) -> tuple[float, float]:
    """Return the minimum and maximum duration of a pass with at least one client, in seconds.

    `fits` is the maximum number of clients on a unit.
    """
    unit, options = side.unit, side.options
    cached = min(fits * options["context"].max(), unit.room / unit.kv)
    most = np.array([1.0, fits, fits * options["new"].max(), cached])
    shortest, longest = 0.0, float((unit.passes @ most).max())
    for row in unit.passes:
        own = row[0] + row[1] + row[2] * options["new"] + row[3] * options["context"]
        shortest = max(shortest, float(own.min()))
    if len(unit.beside):
        each = np.array([1.0, fits, fits * (unit.length if unit.parallel else 1.0), cached])
        longest += (1.0 if unit.parallel else unit.length) * float((unit.beside @ each).max())
    return shortest / unit.open_share * (1.0 - 1e-9), longest / unit.open_share * (1.0 + 1e-9)


def _light(prepared: Prepared, side: Side, shortest: float) -> tuple[float, list[Ends]]:
    """Return a tuple (base, boxes) for batches that are not full.

    `base` is the minimum time between two passes of the same client, without waits, in seconds.
    `boxes` are ranges of summed waits and of loads.
    """
    unit, options = side.unit, side.options
    ones = np.ones(len(options))
    work = np.column_stack([ones, ones, options["new"], options["context"]])
    alone = (work @ unit.passes.T).max(axis=1) / unit.open_share
    trips = [prepared.trips[o["first"] : o["first"] + o["trips"]] + o["sent"] for o in options]
    soonest = np.array([one.mean() for one in trips])
    latest = np.array([one.max() for one in trips]) + np.maximum(
        options["latest"], options["ahead"]
    )
    waits = 0.5 * alone**2 / (soonest + alone)
    base = float((soonest + alone - waits).min()) * (1.0 - 1e-9)
    # Below a load of 1, the waits sum to less than the longest round. Otherwise, they sum to less
    # than the waits of n clients with any option.
    most = float((latest + alone).max()), float((waits * (2.0 + latest / shortest)).max())
    boxes: list[Ends] = []
    for lower, upper in pairwise(LOADS):
        for left, right in _steps(base, base + most[lower >= 1.0] * (1.0 + 1e-9)):
            boxes.append((False, max(0.0, left - base), right - base, lower, upper))
    return base, boxes
