"""Lengths of the support code: a lattice point of known resolution in few bits where few tokens
have a count above 0.

A codeword has three parts. They say how many tokens have one (k, in ceil(log2 min(l, V)) bits),
which they are (ceil(log2 C(V, k)) bits), and how they share the l units (ceil(log2 C(l - 1, k - 1))
bits). All lengths follow from l, V and k, so the code is prefix-free: codewords need no separator.
It is exact. No codeword is longer than that of Eq. 6 (paper 3) by more than ceil(log2 min(l, V)) +
1 bits: only the C(V, k) C(l - 1, k - 1) points of the lattice with k tokens count. If k is far
below l, it is far shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from papers.lattice_points import nearest_counts

from specopt.models.codes.lattice import binomial_bits
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe


def counts_bits(counts: Any) -> Ints:
    """Return the bits of the codewords of a batch of counts.

    Parameters
    ----------
    counts
        Integers >= 0, shape (..., V), of one sum l >= 1 along the last axis.

    Raises
    ------
    InvalidInput
        If the sums differ or a count is negative.

    Examples
    --------
    >>> counts_bits([[4, 0, 0], [2, 1, 1]]).tolist()
    [4, 4]
    """
    values = np.asarray(counts)
    if values.ndim < 1 or values.dtype.kind not in "iu" or not values.size or values.min() < 0:
        raise InvalidInput(
            "counts: expected integers >= 0 along the last axis of an array, got"
            f" {describe(counts)}"
        )
    sums = values.sum(axis=-1)
    resolution = int(sums.flat[0])
    if resolution < 1 or (sums != resolution).any():
        raise InvalidInput(
            f"counts: expected one sum >= 1, got {int(sums.min())} to {int(sums.max())}"
        )
    vocabulary = values.shape[-1]
    sizes, which = np.unique(np.count_nonzero(values, axis=-1), return_inverse=True)
    bits = [
        (min(resolution, vocabulary) - 1).bit_length()
        + binomial_bits(vocabulary, size)
        + binomial_bits(resolution - 1, size - 1)
        for size in sizes.tolist()
    ]
    return np.array(bits)[which].reshape(values.shape[:-1])


def expected_bits(distributions: Any, resolutions: Sequence[int]) -> Floats:
    """Return the mean bits of the codewords of a batch of distributions, quantised at each
    resolution, shape (R,).

    This is what a state of draft control asks for as `distribution_bits`.

    Parameters
    ----------
    distributions
        Shape (..., V): see `papers.lattice_points.nearest_counts`.
    resolutions
        l of each lattice.

    Raises
    ------
    InvalidInput
        If there is no distribution, or one is none, or a resolution is out of range.

    Examples
    --------
    >>> expected_bits([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]], [1, 4]).tolist()
    [2.0, 4.0]
    """
    return np.array([counts_bits(nearest_counts(distributions, l)).mean() for l in resolutions])  # noqa: E741
