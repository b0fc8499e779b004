"""Times of drafting and verifying in a record of serving latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specopt.models.errors import InvalidInput
from testbed.pass_by_pass import pass_seconds

COLUMNS = ("phase", "batch", "new_tokens", "seconds_median")


@dataclass(frozen=True)
class Costs:
    """Seconds of one request's passes.

    Parameters
    ----------
    draft_seconds
        Seconds of a draft.
    round_seconds
        Seconds of a verification of the longest drafts. Models with only one number use it for
        every round.
    by_length
        Measured seconds of a round in addition to its drafts, by draft length 0, 1, .... The last
        value is used for longer drafts.
    """

    draft_seconds: float
    round_seconds: float
    by_length: tuple[float, ...]

    def of(self, length: int) -> float:
        """Return the seconds of a round with the given number of drafts."""
        return self.by_length[min(length, len(self.by_length) - 1)] + length * self.draft_seconds

    @property
    def undrafted_speed(self) -> float:
        """Tokens per second without drafts."""
        return 1.0 / self.by_length[0]


def round_costs(record: Mapping[str, Any]) -> Costs:
    """Return the seconds of a draft and of verifications for one request.

    Raises
    ------
    InvalidInput
        If the record does not have measured passes of both.
    """
    longest = 0
    for side, phase in (("draft", "decode"), ("verify", "verify"), ("verify", "decode")):
        passes = record.get("passes", {}).get(side, dict.fromkeys(COLUMNS, ()))
        every = zip(*(passes[name] for name in COLUMNS), strict=True)
        rows = [new for kind, batch, new, _ in every if kind == phase and batch == 1]
        if not rows:
            raise InvalidInput(
                f"record: expected measured {phase} passes of the {side} model, batch 1"
            )
        longest = max(longest, *rows)
    draft, verify = record["passes"]["draft"], record["passes"]["verify"]
    rounds = tuple(pass_seconds(verify, 1, length + 1) for length in range(longest))
    return Costs(pass_seconds(draft, 1, 1), rounds[-1], rounds)
