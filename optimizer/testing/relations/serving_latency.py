"""What optima of `serving-latency` keep."""

from __future__ import annotations

from specopt.models.serving_latency import ServingLatencyProblem
from specopt.testing.relations.base import (
    NAMES,
    RELAXED,
    UNITS,
    one_more,
    permuted,
    raised,
    relations_of,
    replaced,
    scaled,
    times,
)

_COLUMNS = ("input_tokens", "output_tokens", "snr", "acceptance_rate", "arrival_seconds")
_SECONDS = ("draft_runtime", "verify_runtime", "arrival_seconds", "regroup_seconds")

_keeps = relations_of(ServingLatencyProblem)
_scale = scaled(dict.fromkeys(_SECONDS, 2.0) | {"bandwidth_hz": 0.5})
_wider = raised("bandwidth_hz", lambda hertz: 1.5 * hertz, lambda data: "arrival_seconds" in data)

RELATIONS = (
    _keeps("tasks permuted", NAMES, permuted(*_COLUMNS), equal=True),
    _keeps("time scaled", UNITS, _scale, implied=times(2.0), equal=True),
    _keeps("more bandwidth", "all tasks are ready at once, after the slowest upload", _wider, when="no arrivals"),
    *(_keeps(f"more {model} memory", RELAXED, raised(f"{model}_memory_bytes", lambda amount: 1.25 * amount),
             when="a limit is given") for model in ("draft", "verify")),
    _keeps("no limit of verify memory", RELAXED, replaced("verify_memory_bytes", None), when="a limit is given"),
    _keeps("longer speculation allowed", RELAXED, one_more("max_speculation_length"), when="it is given"),
    _keeps("any mechanism allowed", RELAXED, replaced("mechanism", "any", (None, "pipelined", "sequential")),
           when="one with a draft model is fixed"),
)  # fmt: skip
