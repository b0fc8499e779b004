"""Small instances of `serving-latency` for the conformance suite."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

from specopt import Problem, ServingLatencyProblem, generate

BY_HAND: dict[str, Any] = {
    "format": "specopt/1",
    "input_tokens": [3, 1],
    "output_tokens": [4, 2],
    "snr": [1.0, 3.0],
    "bandwidth_hz": 32.0,
    "draft": {"layers": 1, "hidden": 1, "ffn": 1},
    "verify": {"layers": 1, "hidden": 1, "ffn": 1},
    "draft_runtime": {"seconds_per_flop": 0.0, "overhead_seconds": 1.0},
    "verify_runtime": {"seconds_per_flop": 0.0, "overhead_seconds": 10.0},
    "draft_memory_bytes": 1e6,
    "acceptance_rate": 0.5,
    "max_speculation_length": 3,
    "output_lengths": "known",
}
"""Two tasks that draft in 1 s and verify in 10 s, whatever their size: fields of both kinds of
serving, small enough to work out by hand.
"""


def by_hand(**changes: Any) -> ServingLatencyProblem:
    """Return the problem of `BY_HAND` with some fields replaced."""
    return ServingLatencyProblem.from_dict(BY_HAND | {"kind": "serving-latency"} | changes)


def _instances() -> dict[str, Problem]:
    """Small instances of `serving-latency`: sizes 1 and 2, ties, mechanisms, runtimes, tight and no
    memory.
    """
    family = "serving-latency/paper-1"
    base = generate(family, tasks=5, max_input=40, max_output=24, seed=1)
    assert isinstance(base, ServingLatencyProblem)
    assert base.draft is not None
    tokens = int(base.input_tokens.max()) + base.longest_output
    parameters, kv = base.draft.parameter_bytes, base.draft.kv_bytes_per_token
    replace = dataclasses.replace
    roofline = {
        "draft_runtime": {
            "pieces": [
                {"seconds_per_flop": 0.0, "overhead_seconds": 2e-3},
                {"seconds_per_flop": 4e-13, "overhead_seconds": 1e-3},
            ]
        },
        "verify_runtime": {
            "pieces": [
                {"seconds_per_flop": 0.0, "overhead_seconds": 2e-2},
                {"seconds_per_flop": 2e-14, "overhead_seconds": 1e-2},
            ]
        },
    }
    points = dict(
        zip(
            ("batch", "new_tokens", "cached_tokens"),
            zip(*product((1, 4), (1, 8), (0, 20)), strict=True),
            strict=True,
        )
    )
    draft, verify = (
        [2e-3, 2e-3, 3e-3, 3e-3, 2e-3, 3e-3, 4e-3, 5e-3],
        [0.02, 0.02, 0.02, 0.03, 0.04, 0.04, 0.05, 0.07],
    )
    passes = {
        name: {"passes": points | {"seconds": seconds, "spread": [1e-4] * 8}}
        for name, seconds in (("draft_runtime", draft), ("verify_runtime", verify))
    }
    one = generate(family, tasks=1, max_input=40, max_output=24, seed=2)
    two = generate(family, tasks=2, max_input=40, max_output=24, seed=3, pair="68M-7B")
    return {
        "base": base,
        "one task": one,
        "two tasks": two,
        "equal tasks": replace(base, input_tokens=[7] * 5, output_tokens=[9] * 5, snr=[100.0] * 5),
        "one step": replace(base, output_tokens=[1] * 5, max_output_tokens=1),
        "one length": replace(base, max_speculation_length=1),
        "tight memory": replace(base, draft_memory_bytes=float(parameters + 2 * kv * tokens)),
        "batches of one": replace(base, draft_memory_bytes=float(parameters + kv * tokens)),
        "verify memory": replace(
            base,
            verify_memory_bytes=float(
                base.verify.parameter_bytes + 3 * base.verify.kv_bytes_per_token * tokens
            ),
        ),
        "piecewise": ServingLatencyProblem.from_dict(base.to_dict() | roofline),
        "slowest rounds": replace(base, rounds="slowest"),
        "measured passes": ServingLatencyProblem.from_dict(base.to_dict() | passes),
        "measured passes, one known task": ServingLatencyProblem.from_dict(
            one.to_dict() | passes | {"output_lengths": "known", "max_speculation_length": 3}
        ),
        "known passes, slowest rounds": ServingLatencyProblem.from_dict(
            base.to_dict()
            | passes
            | {"output_lengths": "known", "rounds": "slowest", "mechanism": "any"}
        ),
        "known": replace(base, output_lengths="known"),
        "sequential": replace(base, mechanism="sequential"),
        "autoregressive": replace(base, mechanism="autoregressive"),
        "any": replace(base, mechanism="any"),
        "rates of every task": replace(base, acceptance_rate=[0.9, 0.5, 0.7, 0.8, 0.6]),
        "predicted": replace(
            base, output_lengths="predicted", output_samples=[[3, 9, 24, 1, 7], [5, 5, 20, 2, 7]]
        ),
        "infeasible": replace(base, draft_memory_bytes=float(parameters + kv * tokens - 100)),
        "infeasible autoregressive": replace(
            base, mechanism="autoregressive", verify_memory_bytes=1e9
        ),
    }


INSTANCES = _instances()
