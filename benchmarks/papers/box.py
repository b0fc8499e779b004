"""Samples of the assumptions of an experiment, and the assumptions that decide whether a statement
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.ledger import Assumption
from specopt.models.fields import Floats, Truths

BINS = 4
"""Number of bins of an assumption's range for first-order indices; each choice is a bin."""


def sample(
    box: Sequence[Assumption], count: int, seed: int = 0
) -> tuple[Floats, list[dict[str, Any]]]:
    """Return distinct points that fill the ranges of assumptions: positions from 0 to 1, and values
    (Sobol's sequence, scrambled).
    """
    from scipy.stats import qmc

    exponent = max(0, (count - 1).bit_length())  # the sequence is balanced for powers of two
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
    """Return the first-order Sobol index of each assumption for whether a statement holds.

    The index is the share of the variance that this assumption alone explains: the variance between
    bins minus the variance expected by chance, at least 0.
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
    """The cut of an assumption that best separates where a statement holds.

    Parameters
    ----------
    assumption
        Assumption that is cut.
    where
        One side of the cut, such as ``< 4.2`` or ``= reject``.
    inside
        Share of the points on that side for which the statement holds.
    outside
        Share of the other points for which the statement holds.
    """

    assumption: Assumption
    where: str
    inside: float
    outside: float

    def __str__(self) -> str:
        return (
            f"holds in {100 * self.inside:.0f} % with {self.assumption.name} {self.where}, "
            f"otherwise in {100 * self.outside:.0f} %"
        )


def split(one: Assumption, places: Floats, holds: Truths) -> Split:
    """Return the cut of an assumption with the smallest variance on its two sides."""
    if one.choices:
        masks = [
            (f"= {value}", np.array([one.at(p) == value for p in places.tolist()]))
            for value in one.choices
        ]
    else:
        cuts = np.sort(places)[1:]
        masks = [(f"< {one.at(float(cut)):.3g}", places < cut) for cut in cuts]
    inner = [(where, mask) for where, mask in masks if 0 < mask.sum() < len(mask)]

    def left(mask: Truths) -> float:
        return float(sum(part.var() * len(part) for part in (holds[mask], holds[~mask])))

    where, mask = min(inner, key=lambda pair: left(pair[1]))
    inside, outside = float(holds[mask].mean()), float(holds[~mask].mean())
    if not one.choices and inside < outside:  # name the side where it holds
        return Split(
            assumption=one,
            where=where.replace("<", ">="),
            inside=outside,
            outside=inside,
        )
    return Split(assumption=one, where=where, inside=inside, outside=outside)
