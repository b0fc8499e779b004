"""Lengths of the support code, which has short codewords for lattice points with few positive
counts.

A codeword has three parts: the number k of tokens with a positive count in ceil(log2 min(l, V))
bits, these tokens in ceil(log2 C(V, k)) bits, and the division of the l units among them in
ceil(log2 C(l - 1, k - 1)) bits. All lengths follow from l, V and k, so the code is prefix-free, and
codewords need no separator. The code is exact. No codeword is longer than that of Eq. 6 (paper 3)
by more than ceil(log2 min(l, V)) + 1 bits, because only the C(V, k) C(l - 1, k - 1) points of the
lattice with k tokens are distinguished. If k is far below l, the codeword is much shorter.
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
        Integers >= 0, shape (..., V), with the same sum l >= 1 along the last axis.

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

    This is the field `distribution_bits` of a state of draft control.

    Parameters
    ----------
    distributions
        Shape (..., V); see `papers.lattice_points.nearest_counts`.
    resolutions
        Resolution l of each lattice.

    Raises
    ------
    InvalidInput
        If there are no distributions, if an array is not a distribution, or if a resolution is out
        of range.

    Examples
    --------
    >>> expected_bits([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]], [1, 4]).tolist()
    [2.0, 4.0]
    """
    return np.array([counts_bits(nearest_counts(distributions, l)).mean() for l in resolutions])  # noqa: E741
