"""The linear program on chains that hardly mix, and its size."""

from __future__ import annotations

import pytest
from oracles import draft_control as naive

from specopt import DraftControlProblem, Status, Unsupported, generate, solve


@pytest.mark.parametrize("weak", [1e-8, 1e-9, 1e-10, 1e-12, 1e-14])
def test_chains_that_hardly_mix(weak: float) -> None:
    """Tests that classes that hold together by less than HiGHS's tolerances get the optimum of the
    whole chain.
    """
    problem = generate(
        "draft-control/random", states=4, resolutions=1, min_draft=0, max_draft=3, seed=3
    )
    rows = [
        [0.5, 0.5 - weak, weak, 0],
        [0.25, 0.75, 0, 0],
        [0, 3 * weak, 0.5, 0.5 - 3 * weak],
        [0, 0, 0.75, 0.25],
    ]
    problem = DraftControlProblem.from_dict(problem.to_dict() | {"transition": rows})
    price = naive.optimum_by_price(
        problem.to_dict(), naive.completed(problem.transition.scaled.tolist())
    )
    result = solve(problem, "linear-program")
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(float(price), rel=1e-6)
    assert result.stats["price"] == pytest.approx(float(price), rel=1e-6)


def test_too_large() -> None:
    """Tests that more pairs of state and action than the program takes are refused, with a method
    that can.
    """
    problem = generate("draft-control/random", states=20, max_draft=9999)
    with pytest.raises(
        Unsupported, match="has 999,900 pairs of state and action, the method takes at most 100,000"
    ):
        solve(problem, "linear-program")
    assert solve(problem).status is Status.OPTIMAL
