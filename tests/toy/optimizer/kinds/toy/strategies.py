"""Hypothesis strategies for `toy`."""

from __future__ import annotations

from hypothesis import strategies as st

from specopt.models.toy.problem import ToyPlan, ToyProblem


@st.composite
def problems(draw: st.DrawFn, most: int = 5) -> ToyProblem:
    """A problem with a small limit."""
    return ToyProblem(limit=draw(st.integers(0, most)), value=2.0)


@st.composite
def plans(draw: st.DrawFn, problem: ToyProblem) -> ToyPlan:
    """As many as there may be, or fewer."""
    return ToyPlan(count=draw(st.integers(0, problem.limit)))
