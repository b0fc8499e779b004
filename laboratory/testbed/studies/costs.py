"""What drafting and verifying took in a record of serving latency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specopt.models.errors import InvalidInput

COLUMNS = ("phase", "batch", "new_tokens", "seconds_median")


def round_costs(record: Mapping[str, Any]) -> tuple[float, float]:
    """Return the seconds of a draft, and of a verification of the longest drafts, for one request.

    Raises
    ------
    InvalidInput
        If the record has no measured passes of both.
    """
    found = []
    for side, phase in (("draft", "decode"), ("verify", "verify")):
        passes = record.get("passes", {}).get(side, dict.fromkeys(COLUMNS, ()))
        every = zip(*(passes[name] for name in COLUMNS), strict=True)
        rows = [(new, seconds) for kind, batch, new, seconds in every if kind == phase and batch == 1]
        if not rows:
            raise InvalidInput(f"record: expected measured {phase} passes of the {side} model, batch 1")
        longest = max(new for new, _ in rows)
        times = [seconds for new, seconds in rows if new == longest]
        found.append(sum(times) / len(times))
    return found[0], found[1]
