"""A verdict as a map: in how much of the box of assumptions a statement holds, and which
assumptions decide that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.ledger import Assumption
from specopt.models.fields import Floats, Truths

BINS = 4
"""Parts of an assumption's range that first-order indices compare; choices are bins of their own.
"""


def sample(
    box: Sequence[Assumption], count: int, seed: int = 0
) -> tuple[Floats, list[dict[str, Any]]]:
    """Return distinct points that fill a box: places from 0 to 1, and values (Sobol's sequence,
    scrambled).
    """
    from scipy.stats import qmc

    exponent = max(0, (count - 1).bit_length())  # the sequence is balanced at powers of two
    places: Floats = qmc.Sobol(max(1, len(box)), rng=seed).random_base2(exponent)[
        :count, : len(box)
    ]
    first: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(places.tolist()):
        first.setdefault(tuple(one.at(place) for one, place in zip(box, row, strict=True)), number)
    return places[list(first.values())], [
        dict(zip((one.name for one in box), values, strict=True)) for values in first
    ]


def first_order(box: Sequence[Assumption], places: Floats, holds: Truths) -> Floats:
    """Return the first-order Sobol index of every assumption for whether a statement holds, by
    binning.

    The share of the variance that knowing one assumption alone explains: the variance between bins
    less what chance alone puts there, at least 0.
    """
    truth = holds.astype(np.float64)
    total = truth.var() * len(truth)
    if total == 0.0:
        return np.zeros(len(box))
    found = []
    for one, column in zip(box, places.T, strict=True):
        count = len(one.choices) or BINS
        bins = np.minimum((column * count).astype(int), count - 1)
        sizes = np.bincount(bins, minlength=count)
        means = np.bincount(bins, truth, count) / np.maximum(1, sizes)
        between = float((sizes * (means - truth.mean()) ** 2).sum())
        used = int((sizes > 0).sum())
        noise = (total - between) / max(1, len(truth) - used) * (used - 1)
        found.append(max(0.0, (between - noise) / total))
    return np.array(found)


@dataclass(frozen=True, kw_only=True)
class Split:
    """The one cut that tells best where a statement holds.

    Parameters
    ----------
    assumption
        What is cut.
    where
        One side, in words: ``below 4.2`` or ``= reject``.
    inside, outside
        Share of the points on that side where the statement holds, and on the other.
    """

    assumption: Assumption
    where: str
    inside: float
    outside: float

    def __str__(self) -> str:
        return (
            f"holds in {100 * self.inside:.0f} % with {self.assumption.name} {self.where}, "
            f"else in {100 * self.outside:.0f} %"
        )


def split(one: Assumption, places: Floats, holds: Truths) -> Split:
    """Return the cut of an assumption that leaves the least variance on its two sides."""
    if one.choices:
        masks = [
            (f"= {value}", np.array([one.at(p) == value for p in places.tolist()]))
            for value in one.choices
        ]
    else:
        cuts = np.sort(places)[1:]
        masks = [(f"below {one.at(float(cut)):.3g}", places < cut) for cut in cuts]
    inner = [(where, mask) for where, mask in masks if 0 < mask.sum() < len(mask)]

    def left(mask: Truths) -> float:
        return float(sum(part.var() * len(part) for part in (holds[mask], holds[~mask])))

    where, mask = min(inner, key=lambda pair: left(pair[1]))
    inside, outside = float(holds[mask].mean()), float(holds[~mask].mean())
    if not one.choices and inside < outside:  # name the side where it holds
        return Split(
            assumption=one,
            where=where.replace("below", "from") + " on",
            inside=outside,
            outside=inside,
        )
    return Split(assumption=one, where=where, inside=inside, outside=outside)
