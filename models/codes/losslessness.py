"""Proposition 1 of paper 3 in rational arithmetic: quantising before sampling keeps the law, quantising after does not.

`specopt.models.speculative_sampling` has the same laws in floating point, for many laws of real vocabularies at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specopt.models.codes.lattice import nearest_counts_exactly


def exact_output_law(
    p: Sequence[Fraction], draft_law: Sequence[Fraction], verification_law: Sequence[Fraction]
) -> list[Fraction]:
    """Return the law of the token that comes out of Eq. 1-2, with the conventions of `speculative_sampling`; O(V).

    Parameters
    ----------
    p
        The server's law.
    draft_law
        What the draft is drawn from.
    verification_law
        What it is verified with.
    """
    # q min(1, p / q-hat), and Eq. 1's 0 / 0 is a rejection
    kept = [
        Fraction(0) if not a else q if a >= b else q * a / b
        for a, q, b in zip(p, draft_law, verification_law, strict=True)
    ]
    rejected = 1 - sum(kept)
    above = [max(Fraction(0), a - b) for a, b in zip(p, verification_law, strict=True)]
    mass = sum(above)
    return [k + rejected * (r / mass if mass else a) for k, r, a in zip(kept, above, p, strict=True)]


def quantise_then_sample_law(p: Sequence[Fraction], q: Sequence[Fraction], resolution: int) -> list[Fraction]:
    """Return the output law when drafts are drawn from, and verified with, the nearest lattice point to q.

    It is p, for every q and every resolution (Proposition 1).

    Parameters
    ----------
    p, q
        The laws of server and draft model.
    resolution
        l of the lattice.

    Examples
    --------
    >>> p, q = [Fraction(1, 2), Fraction(1, 2)], [Fraction(2, 3), Fraction(1, 3)]
    >>> quantise_then_sample_law(p, q, 1) == p
    True
    """
    quantised = _quantised(q, resolution)
    return exact_output_law(p, quantised, quantised)


def sample_then_quantise_law(p: Sequence[Fraction], q: Sequence[Fraction], resolution: int) -> list[Fraction]:
    """Return the output law when drafts are drawn from q and verified with the nearest lattice point to it.

    It is another law than p, in general.

    Parameters
    ----------
    p, q
        The laws of server and draft model.
    resolution
        l of the lattice.

    Examples
    --------
    >>> p, q = [Fraction(1, 2), Fraction(1, 2)], [Fraction(2, 3), Fraction(1, 3)]
    >>> [str(share) for share in sample_then_quantise_law(p, q, 1)]
    ['1/3', '2/3']
    """
    return exact_output_law(p, q, _quantised(q, resolution))


def _quantised(q: Sequence[Fraction], resolution: int) -> list[Fraction]:
    return [Fraction(count, resolution) for count in nearest_counts_exactly(q, resolution)]
