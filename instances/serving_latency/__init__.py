"""Families (problem generators) for `serving-latency`."""

from __future__ import annotations

from specopt.instances.family import families
from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.instances.serving_latency.variants import (
    equal_inputs,
    heavy_prefill,
    known_lengths,
    slow_link,
    stage_ratio,
    tight_memory,
)
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
