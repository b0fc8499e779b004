"""Quantised distributions again, from paper 3 and in exact rational numbers; imports nothing of the
package.

Slow and obvious: enumeration of everything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction


def bits(things: int) -> int:
    """ceil(log2 things): the fewest bits that tell `things` things apart."""
    count = 0
    while 2**count < things:
        count += 1
    return count


def lattice(resolution: int, size: int) -> Iterator[tuple[int, ...]]:
    """Every point of Eq. 5, as counts."""
    if size == 1:
        yield (resolution,)
        return
    for first in range(resolution + 1):
        for rest in lattice(resolution - first, size - 1):
            yield (first, *rest)


def distances(q: Sequence[Fraction], counts: Sequence[int]) -> tuple[Fraction, Fraction, Fraction]:
    """L1, squared L2 and Linf from a distribution to a lattice point."""
    resolution = sum(counts)
    gaps = [abs(x - Fraction(o, resolution)) for x, o in zip(q, counts, strict=True)]
    return sum(gaps, Fraction(0)), sum((gap**2 for gap in gaps), Fraction(0)), max(gaps)


def nearest_distances(
    q: Sequence[Fraction], resolution: int
) -> tuple[Fraction, Fraction, Fraction]:
    """The least L1, squared L2 and Linf from a distribution to any lattice point, each by
    itself.
    """
    every = [distances(q, counts) for counts in lattice(resolution, len(q))]
    return min(d[0] for d in every), min(d[1] for d in every), min(d[2] for d in every)


def nearest_counts(q: Sequence[Fraction], resolution: int) -> list[int]:
    """The nearest lattice point to a distribution, as counts; of equal remainders the first ones
    get the units.
    """
    counts = [math.floor(share * resolution) for share in q]
    by_remainder = sorted(range(len(q)), key=lambda i: counts[i] - q[i] * resolution)  # stable
    for index in by_remainder[: resolution - sum(counts)]:
        counts[index] += 1
    return counts


def quantised(q: Sequence[Fraction], resolution: int) -> list[Fraction]:
    """The nearest lattice point to a distribution, as a distribution."""
    return [Fraction(count, resolution) for count in nearest_counts(q, resolution)]


def support_bits(counts: Sequence[int]) -> int:
    """Bits of the support code: its size, the support, and the composition of the resolution into
    its counts.
    """
    resolution, size = sum(counts), sum(1 for o in counts if o)
    sizes = bits(min(resolution, len(counts)))
    return sizes + bits(math.comb(len(counts), size)) + bits(math.comb(resolution - 1, size - 1))


def output_law(
    p: Sequence[Fraction], drawn: Sequence[Fraction], checked: Sequence[Fraction]
) -> list[Fraction]:
    """The law of the token after Eq. 1-2, by going through every draft and every second draw.

    A draft is drawn from one law and verified with another. Where p and the verification law leave
    no residual, a rejected draft is replaced by a draw from p.
    """
    law = [Fraction(0)] * len(p)
    residual = [max(Fraction(0), a - b) for a, b in zip(p, checked, strict=True)]
    second = [r / sum(residual) for r in residual] if sum(residual) else list(p)
    for x, (chance, a, b) in enumerate(zip(drawn, p, checked, strict=True)):
        accept = min(Fraction(1), a / b) if b else Fraction(1 if a else 0)
        law[x] += chance * accept
        for y in range(len(p)):
            law[y] += chance * (1 - accept) * second[y]
    return law
