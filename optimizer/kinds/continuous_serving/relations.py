"""Relations that hold between the optimal values of related `continuous-serving` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from specopt.kinds.relation import raised, relations_of
from specopt.kinds.serving_relations import serving_relations
from specopt.models.continuous_serving.problem import ContinuousServingProblem

_keeps = relations_of(ContinuousServingProblem)

RELATIONS = (
    *serving_relations(
        ContinuousServingProblem, ("arrival_seconds",), ("arrival_seconds", "regroup_seconds")
    ),
    _keeps(
        "more bandwidth",
        "all tasks are ready at once, after the slowest upload",
        raised("bandwidth_hz", lambda hertz: 1.5 * hertz, lambda data: "arrival_seconds" in data),
        when="no arrivals",
    ),
)
