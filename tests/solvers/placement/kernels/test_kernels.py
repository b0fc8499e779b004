"""The whole patterns that a box of placement holds, against all amounts."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from specopt.solvers.placement.kernels import listing

kernels: Any = listing


def test_all_whole_patterns_of_a_box_are_listed() -> None:
    """Tests that all amounts within rows and budget are listed, each once."""
    random = np.random.default_rng(1)
    every = np.array([amounts for amounts in product(range(9), repeat=3) if any(amounts)])
    for _ in range(20):
        table, rhs = (
            random.integers(1, 4, (3, 2)).astype(float),
            random.integers(1, 9, 2).astype(float),
        )
        losses, budget = random.integers(0, 3, 3).astype(float), float(random.integers(0, 7))
        expected = every[(every @ table <= rhs).all(axis=1) & (every @ losses <= budget)].tolist()
        held = np.column_stack([table, losses])
        kept = SimpleNamespace(
            now=np.zeros((2, 3), np.int64),
            left=np.append(rhs, budget),
            at=np.zeros(6, np.int64),
        )
        found = []
        while kernels.advance(held, kept):
            one, entries = [0, 0, 0], kept.at[kernels.ENTRIES]
            for item, number in kept.now[:, :entries].T.tolist():
                one[item] = number
            found.append(one)
        assert sorted(found) == expected and kept.at[kernels.SEEN] == len(expected)
