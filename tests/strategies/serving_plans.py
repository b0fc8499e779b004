"""Problems of the serving kinds, each with a plan."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from specopt.kinds.continuous_serving import strategies as changing_batches
from specopt.kinds.serving_latency import strategies as fixed_batches


def with_plans(kind: Any, **shape: Any) -> st.SearchStrategy[tuple[Any, Any]]:
    """Draw a problem by the strategies of a kind, and a plan."""
    problems = kind.problems(**shape)
    found: st.SearchStrategy[tuple[Any, Any]] = problems.flatmap(
        lambda problem: st.tuples(st.just(problem), kind.plans(problem))
    )
    return found


def fixed(**shape: Any) -> st.SearchStrategy[tuple[Any, Any]]:
    """Draw a problem of serving latency, and a plan."""
    return with_plans(fixed_batches, **shape)


def changing(**shape: Any) -> st.SearchStrategy[tuple[Any, Any]]:
    """Draw a problem of continuous serving, and a plan."""
    return with_plans(changing_batches, **shape)
