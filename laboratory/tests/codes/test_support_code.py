"""The support code: exact, prefix-free, and short for peaked distributions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import quantisation as naive
from papers.lattice_points import nearest_counts

from specopt.models.codes.lattice import distribution_bits
from specopt.models.errors import InvalidInput
from testbed.codes.support_code import (
    decode_support,
    encode_support,
    support_code_bits,
)
from testbed.codes.support_lengths import counts_bits


@pytest.mark.parametrize("vocabulary", range(1, 6))
@pytest.mark.parametrize("resolution", range(1, 7))
def test_every_small_point(vocabulary: int, resolution: int) -> None:
    """Tests that the code is prefix-free, satisfies Kraft's inequality, has the stated lengths and
    is invertible.
    """
    points = list(naive.lattice(resolution, vocabulary))
    words = [encode_support(counts) for counts in points]
    assert len(set(words)) == len(points)
    if len(points) > 1:
        # in sorted order, a word that begins another one is directly before one that it begins
        assert not any(after.startswith(word) for word, after in itertools.pairwise(sorted(words)))
    assert sum(Fraction(1, 2 ** len(word)) for word in words) <= 1
    for counts, word in zip(points, words, strict=True):
        assert len(word) == naive.support_bits(counts) == counts_bits(counts)
        assert decode_support(word + "0110", resolution, vocabulary) == (list(counts), len(word))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60).filter(any))
def test_round_trip(counts: list[int]) -> None:
    """Tests that counts are recovered."""
    word = encode_support(counts)
    assert len(word) == counts_bits(counts) == naive.support_bits(counts)
    assert decode_support(word, sum(counts), len(counts)) == (counts, len(word))


@given(
    st.lists(st.permutations([5, 2, 1, 0, 0, 0]) | st.permutations([8, 0, 0, 0, 0, 0]), max_size=6)
)
def test_codewords_need_no_separator(batch: list[list[int]]) -> None:
    """Tests that concatenated codewords are separated correctly."""
    bits = "".join(encode_support(counts) for counts in batch)
    found = []
    while bits:
        counts, length = decode_support(bits, 8, 6)
        found.append(counts)
        bits = bits[length:]
    assert found == batch


@given(st.integers(1, 3000), st.integers(1, 60_000), st.data())
def test_table_of_lengths(resolution: int, vocabulary: int, data: st.DataObject) -> None:
    """Tests that the table contains the length for every support size, compared with big integers
    at a random size.
    """
    table = support_code_bits(resolution, vocabulary)
    assert len(table) == min(resolution, vocabulary)
    size = data.draw(st.integers(1, len(table)))
    part = resolution // size
    counts = [part] * (size - 1) + [resolution - part * (size - 1)]
    assert table[size - 1] == counts_bits(np.pad(counts, (0, vocabulary - size)))


@given(st.integers(1, 2000), st.integers(1, 60_000))
def test_never_much_longer(resolution: int, vocabulary: int) -> None:
    """Tests that no codeword is longer than that of Eq. 6 by more than the bits of the support's
    size plus one.
    """
    most = (
        distribution_bits(resolution, vocabulary)
        + (min(resolution, vocabulary) - 1).bit_length()
        + 1
    )
    assert support_code_bits(resolution, vocabulary).max() <= most


@pytest.mark.parametrize(("spread", "shorter"), [(0.5, 1.0), (3.0, 0.9), (5.0, 0.65), (10.0, 0.1)])
def test_a_real_vocabulary(spread: float, shorter: float) -> None:
    """Tests that codewords at V = 50272 are shorter for more peaked distributions, and hardly
    longer than Eq. 6 for flat ones.
    """
    weights = np.exp(spread * np.random.default_rng(0).standard_normal(50_272))
    counts = nearest_counts(weights / weights.sum(), 100)
    word = encode_support(counts)
    assert decode_support(word, 100, 50_272) == (counts.tolist(), len(word))
    assert len(word) == counts_bits(counts) <= shorter * distribution_bits(100, 50_272) + 9


def test_a_fine_resolution() -> None:
    """Tests that counts of resolution 1000 at V = 50272 are recovered from a codeword of a third of
    the length of Eq. 6.
    """
    weights = np.exp(5.0 * np.random.default_rng(0).standard_normal(50_272))
    counts = nearest_counts(weights / weights.sum(), 1000)
    word = encode_support(counts)
    assert decode_support(word, 1000, 50_272) == (counts.tolist(), len(word))
    assert 3 * len(word) < distribution_bits(1000, 50_272)


@pytest.mark.parametrize("bits", ["", "11", "10", "0011", "1011"])
def test_no_codeword_is_refused(bits: str) -> None:
    """Tests that invalid support sizes, supports and ends of a text are rejected for l = 4 and V =
    3.
    """
    with pytest.raises(InvalidInput, match="bits: expected"):
        decode_support(bits, 4, 3)
