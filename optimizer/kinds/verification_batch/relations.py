"""Relations that hold between the optimal values of related `verification-batch` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from random import Random

from specopt.kinds.relation import (
    NAMES,
    RELAXED,
    UNITS,
    Change,
    Data,
    permuted,
    raised,
    relations_of,
    scaled,
)
from specopt.models.verification_batch.problem import VerificationBatchProblem

_COLUMNS = (
    "expected_tokens",
    "new_tokens",
    "cached_tokens",
    "request_memory_bytes",
    "deadline_seconds",
)


def _joined(tokens: float, wait: float) -> Change:
    def change(data: Data, random: Random) -> Data:
        more = (tokens, 1, 0, 0.0, data["now_seconds"] + wait)
        return data | {name: [*data[name], one] for name, one in zip(_COLUMNS, more, strict=True)}

    return change


_keeps = relations_of(VerificationBatchProblem)
_TIMES = ("now_seconds", "deadline_seconds", "guard_seconds", "estimator")

RELATIONS = (
    _keeps("requests permuted", NAMES, permuted(*_COLUMNS), equal=True),
    _keeps("time scaled", UNITS, scaled(dict.fromkeys(_TIMES, 2.0)), equal=True),
    _keeps(
        "bytes scaled",
        "needs and memory scale equally",
        scaled({"memory_bytes": 2.0, "request_memory_bytes": 2.0}),
        equal=True,
    ),
    _keeps("more memory", RELAXED, raised("memory_bytes", lambda size: 1.25 * size + 1)),
    _keeps("later deadlines", RELAXED, raised("deadline_seconds", lambda due: due + 0.125)),
    _keeps("one more request", RELAXED, _joined(1.0, 1.0)),
    _keeps("a late request", "no batch may contain it", _joined(100.0, -1.0), equal=True),
)
