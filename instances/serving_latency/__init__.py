"""Families of `serving-latency` problems."""

from __future__ import annotations

from specopt.instances.family import families
from specopt.instances.serving_latency.equal_inputs import equal_inputs
from specopt.instances.serving_latency.heavy_prefill import heavy_prefill
from specopt.instances.serving_latency.known_lengths import known_lengths
from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.instances.serving_latency.slow_link import slow_link
from specopt.instances.serving_latency.stage_ratio import stage_ratio
from specopt.instances.serving_latency.tight_memory import tight_memory
from specopt.models.serving_latency.problem import ServingLatencyProblem

FAMILIES = families(
    ServingLatencyProblem,
    paper_1,
    equal_inputs,
    tight_memory,
    stage_ratio,
    slow_link,
    heavy_prefill,
    known_lengths,
)
