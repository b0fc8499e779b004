"""What optima of `serving-latency` keep."""

from __future__ import annotations

from specopt.models.serving_latency import ServingLatencyProblem
from specopt.testing.relations.base import raised, relations_of
from specopt.testing.relations.serving import serving_relations

_keeps = relations_of(ServingLatencyProblem)

RELATIONS = (
    *serving_relations(ServingLatencyProblem),
    _keeps(
        "more bandwidth",
        "the first step waits for the slowest upload",
        raised("bandwidth_hz", lambda hertz: 1.5 * hertz),
    ),
)
