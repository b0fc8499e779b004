"""The code of Eq. 6: an index of the lattice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import quantisation as naive
from papers.lattice_points import nearest_counts

from specopt.models.codes.lattice import distribution_bits
from specopt.models.errors import InvalidInput
from testbed.codes.lattice_code import decode_lattice, encode_lattice


@pytest.mark.parametrize("vocabulary", range(1, 6))
@pytest.mark.parametrize("resolution", range(1, 7))
def test_every_small_point(vocabulary: int, resolution: int) -> None:
    """Tests that all points have different codewords with exactly the bits of Eq. 6, without gaps,
    and are recovered.
    """
    words = {}
    for counts in naive.lattice(resolution, vocabulary):
        word = encode_lattice(counts)
        assert len(word) == naive.bits(len(list(naive.lattice(resolution, vocabulary))))
        assert decode_lattice(word + "10", resolution, vocabulary) == (list(counts), len(word))
        words[word] = counts
    assert sorted(int(word or "0", 2) for word in words) == list(range(len(words)))
    assert len(words) == len(list(naive.lattice(resolution, vocabulary)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60).filter(any))
def test_round_trip(counts: list[int]) -> None:
    """Tests that counts are recovered, with fewer units or with fewer bars."""
    word = encode_lattice(counts)
    assert len(word) == distribution_bits(sum(counts), len(counts))
    assert decode_lattice(word, sum(counts), len(counts)) == (counts, len(word))


@pytest.mark.parametrize("spread", [0.5, 5.0])
def test_a_real_vocabulary(spread: float) -> None:
    """Tests that 1038 bits are sufficient for a point of resolution 100 at V = 50272, flat or
    peaked.
    """
    weights = np.exp(spread * np.random.default_rng(1).standard_normal(50_272))
    counts = nearest_counts(weights / weights.sum(), 100)
    word = encode_lattice(counts)
    assert len(word) == 1038
    assert decode_lattice(word, 100, 50_272)[0] == counts.tolist()


def test_no_codeword_is_refused() -> None:
    """Tests that an index outside the lattice and a text that ends too early are rejected."""
    assert len(encode_lattice([2, 0, 0])) == 3  # 6 points
    for bits in ("110", "01"):
        with pytest.raises(InvalidInput, match="bits: expected"):
            decode_lattice(bits, 2, 3)
