"""The integer program against the water level on larger problems, and its data."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.untyped import generate, solve

from specopt import Unsupported
from specopt.solvers.draft_allocation.milp import goodputs


@pytest.mark.parametrize("cap", [0, 5])
@pytest.mark.parametrize("seed", range(3))
def test_equals_water_level(cap: int, seed: int) -> None:
    """Tests that both find the same optimum, to 1e-12, for 30 clients."""
    problem = generate("draft-allocation/uniform", clients=30, budget=90, cap=cap, seed=seed)
    assert solve(problem, "milp").objective == pytest.approx(
        solve(problem, "water-level").objective, rel=1e-12
    )


def test_goodputs() -> None:
    """Tests that the data are 1, 1 + a, 1 + a + a^2, and 1 throughout without acceptance."""
    assert goodputs(0.5, 3).tolist() == [1.0, 1.5, 1.75, 1.875]
    assert goodputs(0.0, 2).tolist() == [1.0, 1.0, 1.0]
    assert np.diff(goodputs(0.9, 50)).min() > 0


def test_refuses_above_its_size() -> None:
    """Tests that the refusal names the size."""
    problem = generate("draft-allocation/uniform", clients=100, budget=100)
    with pytest.raises(
        Unsupported,
        match=r"it has 10,100 pairs of client and draft length, the method takes at most",
    ):
        solve(problem, "milp")
