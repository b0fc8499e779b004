"""Sorting in kernels."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.solvers.kernels.sorting import sort_by


@settings(deadline=None)
@given(st.lists(st.sampled_from([-np.inf, -1.5, 0.0, 0.5, 2.0, np.inf]), max_size=150))
def test_is_a_stable_sort(keys: list[float]) -> None:
    """Tests that indices are sorted by key and, where keys tie, stay in their order: as by Python's
    sort.
    """
    key, order = np.array(keys), np.arange(len(keys))
    sort_by(key, order)
    assert order.tolist() == sorted(range(len(keys)), key=keys.__getitem__)
