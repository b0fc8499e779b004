"""Families of `serving-latency` problems."""

from __future__ import annotations

from specopt.instances.family import Family
from specopt.instances.serving_latency.equal_inputs import equal_inputs
from specopt.instances.serving_latency.heavy_prefill import heavy_prefill
from specopt.instances.serving_latency.known_lengths import known_lengths
from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.instances.serving_latency.slow_link import slow_link
from specopt.instances.serving_latency.stage_ratio import stage_ratio
from specopt.instances.serving_latency.tight_memory import tight_memory

FAMILIES: tuple[Family, ...] = (
    Family("serving-latency/paper-1", paper_1),
    Family("serving-latency/equal-inputs", equal_inputs),
    Family("serving-latency/tight-memory", tight_memory),
    Family("serving-latency/stage-ratio", stage_ratio),
    Family("serving-latency/slow-link", slow_link),
    Family("serving-latency/heavy-prefill", heavy_prefill),
    Family("serving-latency/known-lengths", known_lengths),
)
