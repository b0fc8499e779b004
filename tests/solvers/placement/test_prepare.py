"""Placement as arrays: the times of drafting that draft units of a type may take, by the judge."""

from __future__ import annotations

from typing import Any

import pytest
from small_instances.placement import INSTANCES, one_of_each, passes

import specopt
from specopt.models.errors import Unsupported
from specopt.models.placement.plan import PlacementPlan
from specopt.solvers.placement.prepare import most_options, prepare


@pytest.mark.parametrize("kind", ["sequential", "parallel"])
def test_draft_units_take_from_soonest_to_latest(kind: str) -> None:
    """Tests that the ends are those of the least clients that are alike, and of the most beside the
    widest of all.
    """
    problem = one_of_each(
        "goodput",
        3,
        verifier={"passes": passes(0.1, token=0.01)},
        drafter={"kind": kind, "server": {"p": passes(0.05, 0.01, 0.002, 0.001)}},
        pool={"units": 9, "memory_bytes": 1e4, "round_trip_seconds": {"v": 0.3}},
        classes=[
            {"name": name, "clients": 10, "context_tokens": tokens, "acceptance": {"d": 0.7}}
            for name, tokens in (("short", 5), ("long", 300))
        ],
    )

    def seconds(per_unit: int, *clients: tuple[str, int]) -> float:
        one: dict[str, Any] = {"per_unit": 1, "place": "pool", "draft_group": 0}
        plan = PlacementPlan.from_dict(
            {
                "groups": [
                    {
                        "verifier": "v",
                        "units": 1,
                        "clients": [
                            one | {"class": name, "draft_tokens": k} for name, k in clients
                        ],
                    }
                ],
                "draft_groups": [{"pool": "p", "drafter": "d", "units": 9, "per_unit": per_unit}],
            }
        )
        return problem.pool_seconds(plan, 0, clients[0][1])

    prepared = prepare(problem)
    (side,) = prepared.sides
    pooled = [
        (way, option)
        for way, option in zip(side.ways, side.options, strict=True)
        if way.place == "pool"
    ]
    assert any(
        prepared.drafts[way.draft].least < prepared.drafts[way.draft].most for way, _ in pooled
    )
    for way, option in pooled:
        draft, me = prepared.drafts[way.draft], (problem.classes[way.cls].name, way.length)
        assert option["soonest"] == pytest.approx(seconds(draft.least, me), rel=1e-12)
        assert option["latest"] == pytest.approx(seconds(draft.most, me, ("long", 3)), rel=1e-12)


@pytest.mark.parametrize("exact", [False, True], ids=["ranges", "exact"])
def test_options_are_counted_before_they_are_made(exact: bool) -> None:
    """Tests that there are never more options than are counted, and as many where every one fits in
    memory.
    """

    def made(problem: Any) -> int:
        return sum(map(len, (side.ways for side in prepare(problem, exact).sides)))

    for problem in INSTANCES.values():
        assert 0 < made(problem) <= most_options(problem, exact)  # type: ignore[arg-type]
    for family in (
        "placement/one-class",
        "placement/many-classes",
        *(() if exact else ("placement/edge-cloud",)),
    ):
        generated: Any = specopt.generate(family)
        assert made(generated) == most_options(generated, exact)


def test_what_takes_too_much_memory_is_refused() -> None:
    """Tests that no method makes more options than memory holds, be it asked to list them or to
    solve.
    """
    many = specopt.generate("placement/many-classes", drafters=100, max_draft=1000)
    assert specopt.methods(many) == ()
    with pytest.raises(Unsupported, match=r"options of clients need 3\.901e\+09 bytes of memory"):
        specopt.solve(many)


@pytest.mark.usefixtures("own_clock")
@pytest.mark.parametrize("method", ["auto", "none", "greedy"])
def test_time_is_asked_for_while_options_are_made(method: str) -> None:
    """Tests that a limit holds where options alone take longer."""
    usual = specopt.generate("placement/many-classes")
    assert specopt.solve(usual, method, time_limit=0.0).termination == "time_limit"
    many = specopt.generate("placement/many-classes", max_draft=1000)
    result = specopt.solve(many, method, time_limit=0.2)
    seconds = result.seconds - result.stats["preparing_seconds"]
    assert result.termination == "time_limit" and seconds < 1.0
