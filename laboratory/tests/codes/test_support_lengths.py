"""Lengths of the support code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles import quantisation as naive
from papers.lattice_points import nearest_counts

from specopt.models.codes.lattice import binomial_bits
from specopt.models.errors import InvalidInput
from testbed.codes.support_lengths import counts_bits, expected_bits


def test_every_small_coefficient() -> None:
    """Tests that single coefficients have the bits that distinguish the same number of things,
    including powers of two.
    """
    for n in range(41):
        for k in range(n + 1):
            assert binomial_bits(n, k) == naive.bits(math.comb(n, k))


def test_lengths_of_a_batch() -> None:
    """Tests that a batch returns the lengths of its rows, in its shape."""
    batch = np.array([[[4, 0, 0], [2, 1, 1]], [[0, 3, 1], [0, 0, 4]]])
    assert counts_bits(batch).tolist() == [
        [naive.support_bits(row) for row in rows] for rows in batch.tolist()
    ]


def test_expected_bits() -> None:
    """Tests that expected bits are the mean lengths of codewords, and that an empty batch is
    rejected.
    """
    laws = np.random.default_rng(2).dirichlet(np.full(40, 0.1), size=(2, 5))
    resolutions = (1, 8, 50)
    lengths = [
        [
            naive.support_bits(nearest_counts(law, resolution).tolist())
            for law in laws.reshape(-1, 40)
        ]
        for resolution in resolutions
    ]
    assert expected_bits(laws, resolutions) == pytest.approx(np.mean(lengths, axis=1))
    with pytest.raises(InvalidInput, match="counts: expected"):
        expected_bits(np.zeros((0, 4)), [1])


@pytest.mark.parametrize("counts", [[[1, 2], [2, 2]], [[1, -1]], [[0, 0]], [], 3, [[0.5, 0.5]]])
def test_batches_are_checked(counts: Any) -> None:
    """Tests that invalid counts, and counts with different sums, are rejected."""
    with pytest.raises(InvalidInput, match="counts: expected"):
        counts_bits(counts)
