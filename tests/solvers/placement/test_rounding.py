"""Whole units and clients from fractional patterns: the least loss by enumeration, and what can be
served at all.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given
from hypothesis import strategies as st
from small_instances.placement import INSTANCES

from specopt import PlacementProblem
from specopt.solvers.placement.patterns import Pattern, all_patterns, valued
from specopt.solvers.placement.prepare import Prepared, prepare
from specopt.solvers.placement.relaxation import Relaxation
from specopt.solvers.placement.rounding import (
    Filling,
    _groups,
    completed,
    polished,
    spread,
    total,
    whole_units,
)


def instance(name: str, **changes: Any) -> Prepared:
    """A small instance, changed, as arrays."""
    return prepare(PlacementProblem.from_dict(INSTANCES[name].to_dict() | changes), exact=True)


def test_the_first_client_is_served_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the first client of each class is served by the best of all patterns that serve it
    alone.
    """
    prepared = instance("goodput")
    every = valued(prepared, list(all_patterns(prepared)))
    asked: list[int] = []
    monkeypatch.setattr(prepared.budget, "check", lambda: asked.append(1))
    for cls, alone in enumerate(([1, 0], [0, 1])):
        now: Counter[Pattern] = Counter()
        assert Filling(prepared).move(now, cls, 1)
        [(found, number)] = now.items()
        assert number == 1 and found.served(prepared) == alone
        assert found.value == max(one.value for one in every if one.served(prepared) == alone)
    assert len(asked) >= 2, "every unit that is tried asks for the time"


def test_units_that_hold_one_client_each_are_filled() -> None:
    """Tests that 32 clients are placed where none of 32 units holds two, which are tried at once at
    first.
    """
    data = INSTANCES["memory for exactly 3"].to_dict()
    [verifier], [clients] = data["verifiers"], data["classes"]
    one_each = verifier | {"units": 32, "memory_bytes": verifier["weights_bytes"] + 5.0}
    prepared = instance(
        "memory for exactly 3", verifiers=[one_each], classes=[clients | {"clients": 32}]
    )
    found = completed(prepared, Counter())
    assert [(one.served(prepared), number) for one, number in found.items()] == [([1], 32)]


def test_what_cannot_be_served_is_left_out() -> None:
    """Tests that a unit with memory for two clients serves two where there are three."""
    prepared = instance("infeasible: units")
    relaxation = Relaxation(prepared, narrow=1.01)
    found = whole_units(relaxation, relaxation.solve(lambda: None, 1e-6), 16, 2.0)
    assert sum(one.served(prepared)[0] * number for one, number in found.items()) == 2


@pytest.mark.parametrize("name", ["goodput", "pool", "energy"])
def test_programs_of_boxes_suit_absolute_tolerances(name: str) -> None:
    """Tests that the largest number of each row is near 1 where memory is counted in bytes."""
    relaxation = Relaxation(instance(name), narrow=1.01)
    duals = relaxation.solve(lambda: None, 1e-6)
    groups = list(_groups(relaxation, duals, 16))
    for *_, table, rhs, _ in groups:
        largest = np.maximum(np.abs(table).max(axis=0), np.abs(rhs))
        assert np.all((largest >= 0.5) & (largest <= 1.0))
    assert groups


def test_plans_are_polished_by_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a poor plan becomes better by moving clients, serves the same clients, and stays
    as it is without moves.
    """
    own = {"classes": 3, "verifiers": 2, "drafters": 2, "units": 6, "max_draft": 4}
    prepared = prepare(generate("placement/many-classes", number_of_clients=40, seed=1, **own))
    poor = completed(prepared, Counter())
    better = polished(prepared, poor)
    assert total(better) > total(poor) * 1.0001
    for c, clients in enumerate(prepared.clients):
        assert sum(one.served(prepared)[c] * number for one, number in better.items()) == clients
    monkeypatch.setattr("specopt.solvers.placement.rounding.MAX_MOVES", 0)
    assert polished(prepared, poor) == poor


@given(shared=st.dictionaries(st.integers(0, 3), st.integers(0, 30)), units=st.integers(0, 12))
def test_units_of_a_box_share_evenly(shared: dict[int, int], units: int) -> None:
    """Tests that all clients are on some unit, and that no unit has two more of an option, or of
    all, than another.
    """
    found = spread(shared, units)
    listed = [dict(entries) for entries, number in found.items() for _ in range(number)]
    listed += [{} for _ in range(units - len(listed))]
    assert len(listed) == units
    for option, count in shared.items() if units else ():
        held = [one.get(option, 0) for one in listed]
        assert sum(held) == count and max(held) - min(held) <= 1
    totals = [sum(one.values()) for one in listed] or [0]
    assert max(totals) - min(totals) <= 1


def test_wide_boxes_have_good_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that patterns of boxes within 3 % are rounded to a plan of the least cost, where simple
    methods have none.

    That a pool's price is part of the bound is what proves the plan of twelve clients.
    """
    few = solve(generate("placement/edge-cloud", number_of_clients=12, objective="cost"))
    assert few.status == "optimal" and few.objective == pytest.approx(0.8)
    monkeypatch.setattr("specopt.solvers.placement.refined.NARROW", (1.03,))
    found = solve(
        generate("placement/edge-cloud", number_of_clients=66, objective="cost"), "refined"
    )
    assert found.objective == pytest.approx(2.0)
