"""Relations that hold between the optimal values of related `serving-latency` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from specopt.kinds.relation import raised, relations_of
from specopt.kinds.serving_relations import serving_relations
from specopt.models.serving_latency.problem import ServingLatencyProblem

_keeps = relations_of(ServingLatencyProblem)

RELATIONS = (
    *serving_relations(ServingLatencyProblem),
    _keeps(
        "more bandwidth",
        "the first step waits for the slowest upload",
        raised("bandwidth_hz", lambda hertz: 1.5 * hertz),
    ),
)
