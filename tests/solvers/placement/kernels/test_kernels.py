"""The whole patterns that a box of placement holds, against all amounts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from specopt.solvers.placement.kernels import units

kernels: Any = units


def test_all_whole_patterns_of_a_box_are_listed() -> None:
    """Tests that all amounts within rows and budget are listed, each once, and that too many are
    said to be so.
    """
    random = np.random.default_rng(1)
    every = np.array([amounts for amounts in product(range(9), repeat=3) if any(amounts)])
    for _ in range(20):
        table, rhs = (
            random.integers(1, 4, (3, 2)).astype(float),
            random.integers(1, 9, 2).astype(float),
        )
        losses, budget = random.integers(0, 3, 3).astype(float), float(random.integers(0, 7))
        expected = every[(every @ table <= rhs).all(axis=1) & (every @ losses <= budget)].tolist()
        chosen, counts, sizes = (
            *np.zeros((2, len(expected), 3), np.int64),
            np.zeros(len(expected), np.int64),
        )
        number = kernels.enumerate_box(table, rhs, losses, budget, chosen, counts, sizes, 0)
        found = np.zeros((number, 3), np.int64)
        for row in range(number):
            found[row, chosen[row, : sizes[row]]] = counts[row, : sizes[row]]
        assert sorted(found.tolist()) == expected
        if expected:
            assert (
                kernels.enumerate_box(
                    table, rhs, losses, budget, chosen[1:], counts[1:], sizes[1:], 0
                )
                == -1
            )
