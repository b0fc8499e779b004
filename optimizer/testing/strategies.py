"""Hypothesis strategies for random problems of every kind and for their feasible plans.

The strategies require the extra `testing`.

>>> from hypothesis import given
>>> from specopt.testing import strategies
>>> @given(strategies.problems("verification-batch"))
... def test_mine(problem): ...

The module of each kind, such as `specopt.kinds.serving_latency.strategies`, contains the same two
strategies with additional parameters. Ties, zeros, scarce resources, and limits that hold with
equality are common. Hypothesis can shrink every example.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from specopt.api.solve import solve
from specopt.kinds import kind_of
from specopt.models.errors import Unsupported
from specopt.models.problem import Plan, Problem

__all__ = ["plans", "problems"]


def problems(kind: str, **shape: Any) -> st.SearchStrategy[Problem]:
    """Return a strategy that draws small valid problems of a kind.

    Parameters
    ----------
    kind
        Name of the kind, such as "serving-latency".
    shape
        Parameters for the kind's strategy, such as sizes.

    Raises
    ------
    InvalidInput
        If the kind does not exist.
    Unsupported
        If the kind has no strategies.
    """
    found: st.SearchStrategy[Problem] = _module(kind).problems(**shape)
    return found


@st.composite
def plans(draw: st.DrawFn, problem: Problem) -> Plan:
    """Return a strategy that draws feasible plans for a problem.

    Each example is a random plan, or the best known plan if the random plan is infeasible. A
    problem without feasible plans has no examples.
    """
    plan: Plan = draw(_module(problem.kind).plans(problem))
    if not problem.violations(plan):
        return plan
    best = solve(problem).plan
    assume(best is not None)
    assert best is not None, "assumed above"
    return best


def _module(kind: str) -> Any:
    name = kind_of(kind).strategies
    if name is None:
        raise Unsupported(f"strategies: {kind} has no strategies")
    return import_module(name)
