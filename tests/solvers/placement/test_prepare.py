"""Placement as arrays: the times of drafting that draft units of a type may take, by the judge."""

from __future__ import annotations

from typing import Any

import pytest

from specopt import PlacementProblem
from specopt.models.placement_plan import PlacementPlan
from specopt.solvers.placement.prepare import prepare


def passes(*seconds: float) -> list[dict[str, float]]:
    """Return a pass of one piece."""
    names = ("overhead_seconds", "seconds_per_sequence", "seconds_per_token", "seconds_per_cached_token")
    return [dict(zip(names, seconds, strict=True))]


@pytest.mark.parametrize("kind", ["sequential", "parallel"])
def test_draft_units_take_from_soonest_to_latest(kind: str) -> None:
    """Tests that the ends are those of the least clients that are alike, and of the most beside the widest of all."""
    problem = PlacementProblem.from_dict({
        "format": "specopt/1", "kind": PlacementProblem.kind, "objective": "goodput", "max_draft_tokens": 3,
        "verifiers": [{"name": "v", "units": 1, "memory_bytes": 1e9, "weights_bytes": 0.0, "kv_bytes_per_token": 1.0,
                       "passes": passes(0.1, 0.0, 0.01, 0.0)}],
        "drafters": [{"name": "d", "kind": kind, "weights_bytes": 0.0, "kv_bytes_per_token": 1.0,
                      "server": {"p": passes(0.05, 0.01, 0.002, 0.001)}}],
        "draft_pools": [{"name": "p", "units": 9, "memory_bytes": 1e4, "round_trip_seconds": {"v": 0.3}}],
        "classes": [{"name": name, "clients": 10, "context_tokens": tokens, "acceptance": {"d": 0.7}}
                    for name, tokens in (("short", 5), ("long", 300))],
    })  # fmt: skip

    def seconds(per_unit: int, *clients: tuple[str, int]) -> float:
        one: dict[str, Any] = {"per_unit": 1, "place": "pool", "draft_group": 0}
        plan = PlacementPlan.from_dict({
            "groups": [{"verifier": "v", "units": 1,
                        "clients": [one | {"class": name, "draft_tokens": k} for name, k in clients]}],
            "draft_groups": [{"pool": "p", "drafter": "d", "units": 9, "per_unit": per_unit}],
        })  # fmt: skip
        return problem.pool_seconds(plan, 0, clients[0][1])

    prepared = prepare(problem)
    (side,) = prepared.sides
    pooled = [(way, option) for way, option in zip(side.ways, side.options, strict=True) if way.place == "pool"]
    assert any(prepared.drafts[way.draft].least < prepared.drafts[way.draft].most for way, _ in pooled)
    for way, option in pooled:
        draft, me = prepared.drafts[way.draft], (problem.classes[way.cls].name, way.length)
        assert option["soonest"] == pytest.approx(seconds(draft.least, me), rel=1e-12)
        assert option["latest"] == pytest.approx(seconds(draft.most, me, ("long", 3)), rel=1e-12)
