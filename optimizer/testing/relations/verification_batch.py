"""What optima of `verification-batch` keep."""

from __future__ import annotations

from random import Random

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.testing.relations.base import (
    NAMES,
    RELAXED,
    UNITS,
    Change,
    Data,
    Relation,
    permuted,
    raised,
    scaled,
)


def _relations() -> list[Relation]:
    kind = VerificationBatchProblem.kind
    columns = ("expected_tokens", "new_tokens", "cached_tokens", "request_memory_bytes", "deadline_seconds")

    def later(data: Data, random: Random) -> Data:
        return data | {"deadline_seconds": [due + 0.125 for due in data["deadline_seconds"]]}

    def joined(tokens: float, wait: float) -> Change:
        def change(data: Data, random: Random) -> Data:
            more = (tokens, 1, 0, 0.0, data["now_seconds"] + wait)
            return data | {name: [*data[name], one] for name, one in zip(columns, more, strict=True)}

        return change

    scale = dict.fromkeys(("now_seconds", "deadline_seconds", "guard_seconds", "estimator"), 2.0)
    return [
        Relation(kind=kind, name="requests permuted", reason=NAMES, equal=True,
                 change=permuted(*columns, of="expected_tokens")),
        Relation(kind=kind, name="time scaled", reason=UNITS, change=scaled(scale), equal=True),
        Relation(kind=kind, name="bytes scaled", reason="needs and memory grow alike", equal=True,
                 change=scaled({"memory_bytes": 2.0, "request_memory_bytes": 2.0})),
        Relation(kind=kind, name="more memory", reason=RELAXED, change=raised("memory_bytes", lambda b: 1.25 * b + 1)),
        Relation(kind=kind, name="later deadlines", reason=RELAXED, change=later),
        Relation(kind=kind, name="one more request", reason=RELAXED, change=joined(1.0, 1.0)),
        Relation(kind=kind, name="a request that is late", reason="no batch may hold it", change=joined(100.0, -1.0),
                 equal=True),
    ]  # fmt: skip


RELATIONS = tuple(_relations())
