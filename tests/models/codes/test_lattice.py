"""The bits of the lattice of quantised distributions."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import quantisation as naive

from specopt.models.codes import lattice
from specopt.models.codes.lattice import (
    distribution_bits,
)
from specopt.models.errors import InvalidInput

OPT_VOCABULARY = 50_272


@given(st.integers(1, 7), st.integers(1, 5))
def test_bits_count_the_lattice(resolution: int, vocabulary: int) -> None:
    """Tests that b is the fewest bits that tell the points of the lattice apart, the points being
    enumerated.
    """
    points = len(list(naive.lattice(resolution, vocabulary)))
    assert distribution_bits(resolution, vocabulary) == naive.bits(points)


def test_two_tokens_meet_every_power_of_two() -> None:
    """Tests that V = 2, with l + 1 points, needs no bit too many where l + 1 is a power of two,
    none too few after.
    """
    assert [distribution_bits(2**m - 1, 2) for m in range(1, 40)] == list(range(1, 40))
    assert [distribution_bits(2**m, 2) for m in range(1, 40)] == list(range(2, 41))


@pytest.mark.parametrize("vocabulary", [3, 4, 17, 1000, OPT_VOCABULARY])
def test_bits_of_all_resolutions(vocabulary: int) -> None:
    """Tests that resolutions to 2000 are exact: the coefficient itself is carried along as an
    integer.
    """
    points = 1
    for resolution in range(1, 2001):
        points = points * (vocabulary - 1 + resolution) // resolution
        if resolution % 10 == 0 or resolution < 50:
            assert distribution_bits(resolution, vocabulary) == (points - 1).bit_length()


@given(st.integers(2001, 10_000))
@example(10_000)
def test_bits_of_fine_resolutions(resolution: int) -> None:
    """Tests that resolutions to 10^4 at V = 50272 take the bits of the big integer."""
    exact = (math.comb(resolution + OPT_VOCABULARY - 1, OPT_VOCABULARY - 1) - 1).bit_length()
    assert distribution_bits(resolution, OPT_VOCABULARY) == exact


def test_doubt_is_settled_by_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that logarithms decide nothing where their error leaves two integers possible, and are
    far within it.
    """
    logarithm = math.lgamma
    for resolution, vocabulary in (
        (4500, 4501),
        (10_000, 2_002),
        (2_001, 1_000_000),
        (100_000, 2_500),
    ):
        exact = (math.comb(resolution + vocabulary - 1, resolution) - 1).bit_length()
        assert distribution_bits(resolution, vocabulary) == exact
        monkeypatch.setattr(lattice, "_LOGARITHM_ERROR", 1e-14)
        assert distribution_bits(resolution, vocabulary) == exact
        monkeypatch.setattr(lattice, "_LOGARITHM_ERROR", 1e-2)
        monkeypatch.setattr(math, "lgamma", lambda x: 1.001 * logarithm(x))
        assert distribution_bits(resolution, vocabulary) == exact
        monkeypatch.undo()


@pytest.mark.parametrize("resolution", [0, -1, 2.0, True])
def test_resolutions_are_checked(resolution: Any) -> None:
    """Tests that a resolution below 1 or of another type is refused."""
    with pytest.raises(InvalidInput, match="resolution: expected"):
        distribution_bits(resolution, 5)
