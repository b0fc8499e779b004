"""Subsets as integers."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.codes.subset_index import subset_at, subset_index


@pytest.mark.parametrize("universe", range(10))
def test_every_small_subset(universe: int) -> None:
    """Tests that the indices of all subsets of one size are 0..C(n, k)-1, each once, and
    invertible.
    """
    for size in range(universe + 1):
        subsets = list(itertools.combinations(range(universe), size))
        assert sorted(map(subset_index, subsets)) == list(range(math.comb(universe, size)))
        for subset in subsets:
            assert subset_at(subset_index(subset), size, universe) == list(subset)


@given(st.sets(st.integers(0, 60_000), max_size=60))
def test_round_trip(members: set[int]) -> None:
    """Tests that subsets of a large universe are recovered, for any universe that contains them."""
    subset = sorted(members)
    index = subset_index(subset)
    assert index == sum(math.comb(member, place) for place, member in enumerate(subset, start=1))
    for universe in (subset[-1] + 1 if subset else 0, 60_001):
        assert index < math.comb(universe, len(subset))
        assert subset_at(index, len(subset), universe) == subset


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), max_size=12))
def test_runs(runs: list[tuple[int, int]]) -> None:
    """Tests that subsets of consecutive members, including dense ones, are recovered."""
    subset: list[int] = []
    start = 0
    for gap, length in runs:
        subset.extend(range(start + gap, start + gap + length))
        start += gap + length
    assert subset_at(subset_index(subset), len(subset), start + 1) == subset


@given(st.data(), st.integers(1, 2000))
def test_first_and_last(data: st.DataObject, universe: int) -> None:
    """Tests that subsets with the smallest and the largest index and their neighbours are
    recovered.
    """
    size = data.draw(st.integers(0, min(universe, 100)))
    count = math.comb(universe, size)
    for index in {0, min(1, count - 1), max(count - 2, 0), count - 1}:
        assert subset_index(subset_at(index, size, universe)) == index
