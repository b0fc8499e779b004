"""Acceptance probabilities of drafts, and the distribution of the output (paper 3, Eq. 1-2).

A draft token is sampled from a draft distribution and verified with a verification distribution; p
is the distribution of the server. If both are the same (quantise, then sample), the output has the
distribution p (Proposition 1). If the draft is sampled from q and verified with the quantised q-hat
(sample, then quantise), it has another distribution.

Conventions where Eq. 1-2 divide by 0: a draft with q-hat = 0 is accepted if p > 0 and rejected if p
= 0. If p has no mass above q-hat, there is nothing to resample from; a rejected draft (q-hat = p =
0 there) is replaced by a draw from p. Quantise-then-sample never gets that far.

All laws have shape (..., V) and broadcast against each other; they are taken as given, not scaled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.lattice_points import checked_distributions
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats


def total_variation(first: Any, second: Any) -> Floats:
    """Return the total variation distance of distributions, half their L1 distance, shape (...).

    Raises
    ------
    InvalidInput
        If an array is not a distribution.

    Examples
    --------
    >>> float(total_variation([0.5, 0.5], [0.75, 0.25]))
    0.25
    """
    a, b = _laws(first=first, second=second)
    distances: Floats = np.minimum(0.5 * np.abs(a - b).sum(axis=-1), 1.0)
    return distances


def acceptance_rate(p: Any, draft_law: Any, verification_law: Any = None) -> Floats:
    """Return the probability that a draft is accepted, shape (...).

    Parameters
    ----------
    p
        Distribution of the server.
    draft_law
        Distribution from which the draft is sampled.
    verification_law
        Distribution used in the verification; None means the draft law, and the rate is
        1 - TV(p, q-hat).

    Raises
    ------
    InvalidInput
        If an array is not a distribution.

    Examples
    --------
    >>> float(acceptance_rate([0.5, 0.5], [0.75, 0.25]))
    0.75
    """
    if verification_law is None:
        a, drawn = _laws(p=p, draft_law=draft_law)
        kept = np.minimum(a, drawn)
    else:
        a, drawn, checked = _laws(p=p, draft_law=draft_law, verification_law=verification_law)
        kept = drawn * acceptance_chance(a, checked)
    rates: Floats = np.minimum(kept.sum(axis=-1), 1.0)
    return rates


def output_law(p: Any, draft_law: Any, verification_law: Any) -> Floats:
    """Return the distribution of the output of Eq. 1-2, the draft or its replacement, shape
    (..., V).

    Parameters
    ----------
    p
        Distribution of the server.
    draft_law
        Distribution from which the draft is sampled.
    verification_law
        Distribution used in the verification.

    Raises
    ------
    InvalidInput
        If an array is not a distribution.

    Examples
    --------
    >>> output_law([0.5, 0.5], [0.75, 0.25], [0.75, 0.25]).tolist()
    [0.5, 0.5]
    >>> output_law([0.5, 0.5], [0.75, 0.25], [1.0, 0.0]).tolist()
    [0.375, 0.625]
    """
    a, drawn, checked = _laws(p=p, draft_law=draft_law, verification_law=verification_law)
    kept = drawn * acceptance_chance(a, checked)
    rejected = np.maximum(drawn.sum(axis=-1, keepdims=True) - kept.sum(axis=-1, keepdims=True), 0.0)
    law: Floats = kept + rejected * replacement_law(a, checked)
    return law


def acceptance_chance(p: Any, checked: Any) -> Floats:
    """Return each token's probability to be accepted when drafted (Eq. 1): min(1, p / q-hat), 1 or
    0 for q-hat = 0.
    """
    accepted: Floats = np.where(p >= checked, p > 0.0, p / np.where(checked > 0.0, checked, 1.0))
    return accepted


def replacement_law(p: Floats, checked: Floats) -> Floats:
    """Return the distribution of the replacement of a rejected draft (Eq. 2); it is p where p
    has no mass above q-hat.
    """
    above = np.maximum(p - checked, 0.0)
    mass = above.sum(axis=-1, keepdims=True)
    residual: Floats = np.where(mass > 0.0, above / np.where(mass > 0.0, mass, 1.0), p)
    return residual


def _laws(**values: Any) -> tuple[Floats, ...]:
    """Return distributions as validated arrays of the same length."""
    laws = tuple(checked_distributions(name, value)[0] for name, value in values.items())
    try:
        np.broadcast_shapes(*(law.shape for law in laws))
    except ValueError:
        fits = False
    else:
        fits = len({law.shape[-1] for law in laws}) == 1
    if not fits:
        names, shapes = " and ".join(values), " and ".join(str(law.shape) for law in laws)
        raise InvalidInput(f"{names}: expected shapes that fit each other, got {shapes}")
    return laws
