"""The integer program against the water level on larger problems."""

from __future__ import annotations

import pytest
from helpers.untyped import generate, solve

from specopt import Unsupported


@pytest.mark.parametrize("cap", [0, 5])
@pytest.mark.parametrize("seed", range(3))
def test_equals_water_level(cap: int, seed: int) -> None:
    """Tests that both find the same optimum, to 1e-12, for 30 clients."""
    problem = generate("draft-allocation/uniform", clients=30, budget=90, cap=cap, seed=seed)
    assert solve(problem, "milp").objective == pytest.approx(
        solve(problem, "water-level").objective, rel=1e-12
    )


def test_refuses_above_its_size() -> None:
    """Tests that the refusal names the size."""
    problem = generate("draft-allocation/uniform", clients=100, budget=100)
    with pytest.raises(
        Unsupported,
        match=r"it has 10,100 pairs of client and draft length, but the method accepts at most",
    ):
        solve(problem, "milp")
