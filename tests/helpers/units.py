"""The same problem in other units: seconds, bytes and bits, weights, or another clock."""

from __future__ import annotations

import copy
from typing import Any

from specopt import Problem

RUNTIMES = tuple(
    f"{model}_runtime.{field}"
    for model in ("draft", "verify")
    for field in (
        "seconds_per_flop",
        "overhead_seconds",
        "pieces.seconds_per_flop",
        "pieces.overhead_seconds",
    )
)
SECONDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "serving-latency": (RUNTIMES, ("bandwidth_hz",)),
    "continuous-serving": ((*RUNTIMES, "arrival_seconds", "regroup_seconds"), ("bandwidth_hz",)),
    "verification-batch": (
        (
            "now_seconds",
            "deadline_seconds",
            "guard_seconds",
            "estimator.seconds_per_new_token",
            "estimator.seconds_per_interaction",
            "estimator.seconds_per_cached_token",
            "estimator.overhead_seconds",
        ),
        (),
    ),
    "prompt-chunking": (
        (
            "cloud_delay.seconds",
            "local_overhead_seconds",
            "local_seconds_per_token",
            "message_overhead_seconds",
            "link_latency_seconds",
            "head_seconds",
        ),
        ("uplink_bytes_per_second", "downlink_bytes_per_second"),
    ),
    "draft-control": (
        ("draft_seconds_per_token", "verify_seconds"),
        ("states.uplink_bits_per_second", "states.downlink_bits_per_second"),
    ),
    "fair-goodput": (
        (
            "draft_seconds_per_token",
            "network_seconds",
            "verify_overhead_seconds",
            "verify_seconds_per_token",
        ),
        ("min_goodput",),
    ),
    "draft-allocation": ((), ()),
    "draft-stopping": (("draft_seconds_per_token", "round_seconds"), ()),
}
"""Per kind: fields that grow with the seconds in a unit, and fields that shrink."""

WORTH = {
    "draft-allocation": "weights",
    "fair-goodput": "weights",
    "verification-batch": "expected_tokens",
}
"""Per kind: the field whose unit scales the objective alone."""


def in_other_seconds(problem: Problem, factor: float) -> Problem:
    """Return the problem with every second counted as `factor` new ones; per round nothing
    changes.
    """
    if getattr(problem, "per", None) == "round":
        return problem
    grows, shrinks = SECONDS[problem.kind]
    data = copy.deepcopy(problem.to_dict())
    for path in grows:
        _scale(data, path.split("."), factor)
    for path in shrinks:
        _scale(data, path.split("."), 1.0 / factor)
    return type(problem).from_dict(data)


def in_other_worth(problem: Problem, factor: float) -> Problem:
    """Return the problem with its weights in another unit, where it has any."""
    data = copy.deepcopy(problem.to_dict())
    if problem.kind in WORTH:
        _scale(data, [WORTH[problem.kind]], factor)
    return type(problem).from_dict(data)


def _scale(data: Any, path: list[str], factor: float) -> None:
    if isinstance(data, list):
        for item in data:
            _scale(item, path, factor)
    elif path[0] in data:
        if path[1:]:
            _scale(data[path[0]], path[1:], factor)
        else:
            value = data[path[0]]
            data[path[0]] = (
                [item * factor for item in value] if isinstance(value, list) else value * factor
            )
