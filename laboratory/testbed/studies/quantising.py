"""The cost of quantising the distributions of the draft model, and the shorter code (paper 3).

Recorded distributions contain only their most probable tokens. A lattice point with a practical
resolution has counts only on those. Distributions whose point has other counts are excluded and
counted. Tokens missing in the list of the verify model are treated as having probability 0. The
acceptance rate is therefore a lower bound, and the error is less than the rest of the list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.codes.lattice import distribution_bits
from specopt.models.drafting import AFTER
from specopt.models.fields import Floats
from testbed.codes.quantised_acceptance import QuantisedAcceptance
from testbed.codes.support_code import support_code_bits
from testbed.recorded import RecordedDrafts

RESOLUTIONS = (4, 8, 16, 32, 64, 128)
VOCABULARY = 49152


@dataclass(frozen=True, kw_only=True)
class Quantised:
    """The distributions of one temperature on one lattice.

    Parameters
    ----------
    temperature, resolution
        Temperature, and resolution of the lattice.
    distributions
        Number of distributions. `left_out` is the number of those with counts on tokens that were
        not recorded.
    distance
        Mean TV(q, q-hat).
    acceptance_rate
        Mean sum of min(p, q-hat) over the recorded tokens.
    unquantised_rate
        The same for q.
    bits, shorter
        Mean bits of our code, and the share of distributions for which it is shorter than that of
        Eq. 6.
    equation_6_bits
        Bits of Eq. 6, which are the same for all distributions.
    """

    temperature: float
    resolution: int
    distributions: int
    left_out: int
    distance: float
    acceptance_rate: float
    unquantised_rate: float
    bits: float
    shorter: float
    equation_6_bits: int


def quantising(log: RecordedDrafts, every: int = 7) -> list[Quantised]:
    """Return the cost of each resolution at each temperature above 0, from every n-th
    distribution.
    """
    found = []
    for temperature in np.unique(log.temperature[log.temperature > 0.0]).tolist():
        mine = log.select(
            np.flatnonzero((log.temperature == temperature) & (log.outcome != AFTER))[::every]
        )
        found += [_of(mine, resolution) for resolution in RESOLUTIONS]
    return found


def slope(rows: list[Quantised]) -> QuantisedAcceptance:
    """Return acceptance as a linear function of the distance, over the resolutions of one
    temperature.
    """
    return QuantisedAcceptance.fit(
        [row.distance for row in rows], [row.acceptance_rate for row in rows]
    )


def _of(log: RecordedDrafts, resolution: int) -> Quantised:
    code = support_code_bits(resolution, VOCABULARY)
    rows, left_out = [], 0
    for place in range(len(log)):
        tokens, q = log.draft_laws[place]
        counts = nearest_of_list(q, float(log.draft_laws.rest[place]), resolution)
        if counts is None:
            left_out += 1
            continue
        verified, p = log.verify_laws[place]
        _, mine, theirs = np.intersect1d(tokens, verified, assume_unique=True, return_indices=True)
        coarse = counts / resolution
        distance = 0.5 * (np.abs(coarse - q).sum() + log.draft_laws.rest[place])
        rate, fine = (np.minimum(law[mine], p[theirs]).sum() for law in (coarse, q))
        rows.append((distance, rate, fine, code[np.count_nonzero(counts) - 1]))
    means, bits = np.mean(rows, axis=0), distribution_bits(resolution, VOCABULARY)
    return Quantised(
        temperature=float(log.temperature[0]),
        resolution=resolution,
        distributions=len(rows),
        left_out=left_out,
        distance=float(means[0]),
        acceptance_rate=float(means[1]),
        unquantised_rate=float(means[2]),
        bits=float(means[3]),
        shorter=float(np.mean([row[3] < bits for row in rows])),
        equation_6_bits=bits,
    )


def nearest_of_list(probabilities: Floats, rest: float, resolution: int) -> Floats | None:
    """Return the counts of the nearest lattice point on the most probable tokens, or None if other
    tokens may have counts.

    Counts are rounded down, and the missing units go to the largest remainders. The share of a
    token outside the list is at most that of the last token in the list, and at most that of all
    tokens outside it.
    """
    scaled = probabilities * resolution
    counts: Floats = np.floor(scaled)
    missing = resolution - int(counts.sum())
    taken = np.argsort(counts - scaled, kind="stable")[:missing]
    beyond = min(scaled[-1], rest * resolution)
    if (
        missing > len(counts)
        or beyond >= 1.0
        or (missing and (scaled - counts)[taken[-1]] < beyond)
    ):
        return None
    counts[taken] += 1
    return counts
