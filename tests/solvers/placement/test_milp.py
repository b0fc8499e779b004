"""The integer program of placement against costs by hand."""

from __future__ import annotations

from typing import Any

import pytest

from specopt import PlacementProblem, Status, solve

TICK = 1.0 / 128.0


def passes(overhead: float, each: float = 0.0) -> list[dict[str, float]]:
    """A pass that takes so many ticks, and so many more for each sequence and for each token."""
    return [
        {
            "overhead_seconds": overhead * TICK,
            "seconds_per_sequence": each * TICK,
            "seconds_per_token": each * TICK,
            "seconds_per_cached_token": 0.0,
        }
    ]


@pytest.mark.parametrize(("price", "cost"), [(0.5, 2.5), (3.0, 4.0)])
def test_draft_units_are_paid_for(price: float, cost: float) -> None:
    """Tests that a draft unit takes the place of a second verifier where it is cheaper, and is part
    of the cost.

    Three clients have 12.8 tokens per second of one unit without drafts, and 14.8 with two of a
    draft unit.
    """
    data: dict[str, Any] = {
        "format": "specopt/1",
        "kind": PlacementProblem.kind,
        "objective": "cost",
        "max_draft_tokens": 2,
        "verifiers": [
            {
                "name": "v",
                "units": 2,
                "memory_bytes": 100.0,
                "weights_bytes": 10.0,
                "kv_bytes_per_token": 1.0,
                "passes": passes(4, 1),
                "price_per_second": 2.0,
            }
        ],
        "drafters": [
            {
                "name": "d",
                "weights_bytes": 1.0,
                "kv_bytes_per_token": 0.5,
                "server": {"p": passes(1)},
            }
        ],
        "draft_pools": [
            {
                "name": "p",
                "units": 2,
                "memory_bytes": 10.0,
                "round_trip_seconds": {"v": TICK},
                "price_per_second": price,
            }
        ],
        "classes": [
            {
                "name": "c",
                "clients": 3,
                "context_tokens": 4,
                "acceptance": {"d": 0.75},
                "min_tokens_per_second": 14.0,
            }
        ],
    }
    result = solve(PlacementProblem.from_dict(data), "milp")
    assert (result.status, result.objective) == (Status.OPTIMAL, cost)
