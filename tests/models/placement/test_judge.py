"""The judge of placement against the one written a second time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import placement as oracle
from small_instances.placement import (
    client_class,
    drafter,
    passes_of,
    pool,
    problem_of,
    verifier,
)

from specopt import InvalidInput, PlacementPlan, PlacementProblem
from specopt.kinds.placement import strategies as strategies
from specopt.models.placement.plan import Served, UnitGroup


def close(one: float | None, other: float | None) -> bool:
    """Return whether two terms are equal but for rounding."""
    if one is None or other is None:
        return one is other
    return one == pytest.approx(other, rel=1e-12, abs=1e-300)


@given(st.data())
def test_judged_twice(data: Any) -> None:
    """Tests that two judges agree on what is feasible, on the objective and on all terms that both
    report.
    """
    problem = data.draw(strategies.problems())
    plan = data.draw(strategies.plans(problem))
    try:
        expected = oracle.evaluate(problem.to_dict(), plan.to_dict())
    except oracle.Infeasible:
        assert problem.violations(plan)
        return
    assert not problem.violations(plan)
    found = problem.evaluate(plan)
    assert close(found.objective, expected["objective"])
    terms, twice = found.terms, expected["terms"]
    for name, other in (
        ("watts", "watts"),
        ("price_per_second", "price"),
        ("joules_per_token", "joules_per_token"),
    ):
        assert close(terms[name], twice[other]), name
    for rows, others in zip(terms["classes"].values(), twice["classes"].values(), strict=True):
        for row, other in zip(rows, others, strict=True):
            assert close(row.pop("tokens_per_second"), other.pop("tokens_per_second"))
            assert row == other


def test_only_devices_that_draft_need_their_power() -> None:
    """Tests that the power of a device counts while the device drafts, and not if its client gets
    drafts from elsewhere or none.
    """
    server = {"class": "chat", "per_unit": 3, "place": "none"}
    device = server | {"place": "device", "drafter": "drafter", "draft_tokens": 2}
    for client, share in ((server, 0.0), (device, None)):
        group = {"verifier": "verifier", "units": 1, "clients": [client]}
        plan = PlacementPlan.from_dict({"groups": [group]})
        watts = [
            problem_of(classes=[client_class(device_watts=power)]).evaluate(plan).terms["watts"]
            for power in (0.0, 7.0)
        ]
        problem = problem_of(classes=[client_class(device_watts=7.0)])
        expected = oracle.evaluate(problem.to_dict(), plan.to_dict())["terms"]["watts"]
        assert watts[1] == pytest.approx(expected, rel=1e-12)
        assert (watts[1] - watts[0] == 0.0) if share == 0.0 else (0.0 < watts[1] - watts[0] < 21.0)


def test_every_draft_group_has_its_own_clients() -> None:
    """Tests that of two draft groups each is held against the clients that refer to it, and takes
    what theirs takes.
    """
    passes = [passes_of(2)[0] | {"seconds_per_cached_token": 1e-4}]
    problem = problem_of(
        verifiers=[verifier(memory_bytes=999.0, passes=passes)],
        drafters=[drafter(server={"pool": passes}, beside={})],
        draft_pools=[pool(memory_bytes=999.0)],
        classes=[
            client_class(name, 2, context_tokens=tokens, min_tokens_per_second=0.0)
            for name, tokens in (("short", 4), ("long", 80))
        ],
    )

    def plan(short: int, most: int) -> PlacementPlan:
        clients = [
            {"class": name, "place": "pool", "draft_tokens": 1, "per_unit": count, "draft_group": g}
            for g, (name, count) in enumerate({"short": short, "long": 2}.items())
        ]
        drafts = [
            {"pool": "pool", "drafter": "drafter", "units": 1, "per_unit": each}
            for each in (short, most)
        ]
        groups = [{"verifier": "verifier", "units": 1, "clients": clients}]
        return PlacementPlan.from_dict({"groups": groups, "draft_groups": drafts})

    def drafters(**changed: Any) -> list[str | None]:
        data = plan(2, 2).to_dict()
        data["groups"][0]["clients"][1] |= changed
        one = PlacementPlan.from_dict(data)
        (group,) = one.groups
        found = [problem.drafter_of(one, group, each) for each in group.clients]
        return [each.name if each else None for each in found]

    assert drafters() == ["drafter", "drafter"]
    assert drafters(draft_group=2) == ["drafter", None]
    assert problem.violations(plan(2, 2)) == []
    for wrong in (1, 3):
        assert problem.violations(plan(2, wrong)) == [
            f"draft_groups[1].per_unit: expected 2, got {wrong}; 2 clients share 1 unit"
        ]
    for short in (1, 2):
        one = plan(short, 2)
        data = problem.to_dict()
        data["classes"][0]["clients"] = short
        found = PlacementProblem.from_dict(data).evaluate(one).objective
        assert close(found, oracle.evaluate(data, one.to_dict())["objective"])


@pytest.mark.parametrize(
    ("objective", "where"),
    [
        ("capacity", r"classes\[0\].min_tokens_per_second"),
        ("cost", r"verifiers\[0\].price_per_second"),
        ("energy", r"verifiers\[0\].busy_watts"),
    ],
)
def test_what_an_objective_needs(objective: str, where: str) -> None:
    """Tests that a problem without what its objective adds up is refused by the field that
    lacks.
    """
    least = 0.0 if objective == "capacity" else 1.0
    with pytest.raises(
        InvalidInput, match=rf"^{where}: expected a number > 0 when objective is '{objective}'"
    ):
        problem_of(
            objective,
            verifiers=[verifier(price_per_second=0.0, idle_watts=0.0, busy_watts=0.0)],
            classes=[client_class(min_tokens_per_second=least)],
        )


@pytest.mark.parametrize(("field", "value"), [("units", 0), ("verifier", 1), ("clients", ())])
def test_bad_groups_are_refused(field: str, value: object) -> None:
    """Tests that a group of units names the field that is outside its domain."""
    good = {"verifier": "v", "units": 1, "clients": (Served(class_="c", per_unit=1, place="none"),)}
    with pytest.raises(InvalidInput, match=rf"^{field}: expected"):
        UnitGroup(**(good | {field: value}))  # type: ignore[arg-type]
