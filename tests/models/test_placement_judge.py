"""The judge of placement against the one written a second time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import placement as oracle

from specopt.testing.strategies import placement as strategies


def close(one: float | None, other: float | None) -> bool:
    """Return whether two terms are equal but for rounding."""
    if one is None or other is None:
        return one is other
    return one == pytest.approx(other, rel=1e-12, abs=1e-300)


@given(st.data())
def test_judged_twice(data: Any) -> None:
    """Tests that two judges agree on what is feasible, on the objective and on all terms that both report."""
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
    for name, other in (("watts", "watts"), ("price_per_second", "price"), ("joules_per_token", "joules_per_token")):
        assert close(terms[name], twice[other]), name
    for rows, others in zip(terms["classes"].values(), twice["classes"].values(), strict=True):
        for row, other in zip(rows, others, strict=True):
            assert close(row.pop("tokens_per_second"), other.pop("tokens_per_second"))
            assert row == other
