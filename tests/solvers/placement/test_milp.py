"""The integer program of placement against costs by hand."""

from __future__ import annotations

import pytest
from helpers.untyped import solve
from small_instances.placement import TICK, one_of_each, passes

from specopt import Status


@pytest.mark.parametrize(("price", "cost"), [(0.5, 2.5), (3.0, 4.0)])
def test_draft_units_are_paid_for(price: float, cost: float) -> None:
    """Tests that a draft unit takes the place of a second verifier where it is cheaper, and is part
    of the cost.

    Three clients have 12.8 tokens per second of one unit without drafts, and 14.8 with two of a
    draft unit.
    """
    problem = one_of_each(
        "cost",
        2,
        verifier={
            "units": 2,
            "memory_bytes": 100.0,
            "weights_bytes": 10.0,
            "passes": passes(4 * TICK, TICK, TICK),
            "price_per_second": 2.0,
        },
        drafter={
            "weights_bytes": 1.0,
            "kv_bytes_per_token": 0.5,
            "server": {"p": passes(TICK)},
        },
        pool={
            "units": 2,
            "memory_bytes": 10.0,
            "round_trip_seconds": {"v": TICK},
            "price_per_second": price,
        },
        classes=[
            {
                "clients": 3,
                "context_tokens": 4,
                "acceptance": {"d": 0.75},
                "min_tokens_per_second": 14.0,
            }
        ],
    )
    result = solve(problem, "milp")
    assert (result.status, result.objective) == (Status.OPTIMAL, cost)
