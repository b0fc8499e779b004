"""What optima of `serving-latency` keep."""

from __future__ import annotations

from specopt.models.serving_latency import ServingLatencyProblem
from specopt.testing.relations.base import (
    NAMES,
    RELAXED,
    UNITS,
    Relation,
    permuted,
    raised,
    replaced,
    scaled,
)


def _relations() -> list[Relation]:
    kind = ServingLatencyProblem.kind
    columns = ("input_tokens", "output_tokens", "snr", "acceptance_rate", "arrival_seconds")
    seconds = ("draft_runtime", "verify_runtime", "arrival_seconds", "regroup_seconds")
    scale = dict.fromkeys(seconds, 2.0) | {"bandwidth_hz": 0.5}
    draft = raised("draft_memory_bytes", lambda amount: 1.25 * amount)
    verify = raised("verify_memory_bytes", lambda amount: 1.25 * amount)
    return [
        Relation(kind=kind, name="tasks permuted", reason=NAMES, change=permuted(*columns, of="snr"), equal=True),
        Relation(kind=kind, name="time scaled", reason=UNITS, change=scaled(scale), equal=True,
                 implied=lambda problem, objective: 2.0 * objective),
        Relation(kind=kind, name="more bandwidth", when="no arrivals",
                 reason="all tasks are ready at once, after the slowest upload",
                 change=raised("bandwidth_hz", lambda hertz: 1.5 * hertz, lambda data: "arrival_seconds" in data)),
        Relation(kind=kind, name="more draft memory", when="a limit is given", reason=RELAXED, change=draft),
        Relation(kind=kind, name="more verify memory", when="a limit is given", reason=RELAXED, change=verify),
        Relation(kind=kind, name="no limit of verify memory", when="a limit is given", reason=RELAXED,
                 change=replaced("verify_memory_bytes", None)),
        Relation(kind=kind, name="longer speculation allowed", when="it is given", reason=RELAXED,
                 change=raised("max_speculation_length", lambda length: length + 1)),
        Relation(kind=kind, name="any mechanism allowed", when="one with a draft model is fixed", reason=RELAXED,
                 change=replaced("mechanism", "any", (None, "pipelined", "sequential"))),
    ]  # fmt: skip


RELATIONS = tuple(_relations())
