"""The goodput-optimal speculation length of every batch size, in the fewest ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.pass_time import PassTime, Which
from specopt.models.position_acceptance import PositionAcceptance
from specopt.solvers.speculation_table.goodput import goodput
from specopt.solvers.speculation_table.ranges import fewest_ranges
from specopt.solvers.speculation_table.runtimes import Runtimes
from specopt.solvers.speculation_table.schedule import Schedule

MOST_REQUESTS = 65_536
MOST_DRAFTS = 1_000
DEFAULT_DRAFTS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeculationTable:
    """The table, and what it is worth.

    Parameters
    ----------
    ranges
        First and last batch size, both included, and drafts per step.
    speedup
        By range: mean over its batch sizes of the goodput relative to no speculation.
    speedup_limits
        By range: lowest and highest mean over the corners of the confidence limits of acceptance and runtimes; None
        without any.
    loss
        By range: the largest share of goodput lost against the best length of a batch size.
    most_drafts
        Longest draft that was considered.
    robust
        Whether the lengths are best in the worst case within the limits.
    relative
        Shape (B, K + 1): goodput at every batch size with 0..K drafts relative to no speculation; in the worst case if
        `robust`.
    notes
        What a reader should know.
    """

    ranges: tuple[tuple[int, int, int], ...]
    speedup: tuple[float, ...]
    speedup_limits: tuple[tuple[float, float], ...] | None
    loss: tuple[float, ...]
    most_drafts: int
    robust: bool
    relative: Floats
    notes: tuple[str, ...]

    def schedule(self) -> Schedule:
        """Return the table as engines are configured with it: no speculation at all if it is no faster on average."""
        return Schedule.if_faster(self.ranges, tuple(range(1, len(self.relative) + 1)), self.relative)

    def to_dict(self) -> dict[str, Any]:
        """Return the table and what it is worth as JSON-like data."""
        limits = self.speedup_limits or ((None, None),) * len(self.ranges)
        rows = [
            {
                "batch": [low, high],
                "num_speculative_tokens": choice,
                "speedup": speedup,
                "speedup_low": limit[0],
                "speedup_high": limit[1],
                "largest_loss": loss,
            }
            for (low, high, choice), speedup, limit, loss in zip(
                self.ranges, self.speedup, limits, self.loss, strict=True
            )
        ]
        return {
            "ranges": rows,
            "robust": self.robust,
            "max_length": self.most_drafts,
            "notes": list(self.notes),
        }


def speculation_table(
    runtimes: Runtimes,
    acceptance: PositionAcceptance,
    *,
    max_batch: int = 256,
    max_length: int | None = None,
    loss: float = 0.01,
    robust: bool = False,
) -> SpeculationTable:
    """Return the goodput-optimal speculation length for every batch size, in the fewest ranges.

    Parameters
    ----------
    runtimes, acceptance
        Of the two models.
    max_batch
        Largest batch.
    max_length
        Longest draft; None: as far as the acceptance is known, or 8.
    loss
        Share of the best goodput that a batch size may lose to make ranges fewer.
    robust
        Take the length whose speed-up over no speculation is best in the worst case within the confidence limits; no
        speculation has a speed-up of 1 in every case, so nothing that may be slower is taken.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the acceptance is not known for so many positions.
    """
    for name, value, most in (("max_batch", max_batch, MOST_REQUESTS), ("max_length", max_length, MOST_DRAFTS)):
        if value is not None:
            integer(name, value, 1, most)
    known = acceptance.most_drafts
    drafts = (known or DEFAULT_DRAFTS) if max_length is None else max_length
    notes = list(acceptance.notes)
    if known is not None and drafts > known:
        notes.append(f"acceptance is known for {known} draft positions: longer drafts were not considered")
        drafts = known
    notes.extend(
        f"{name}: seconds_per_flop counts per token, as there is no {name}_model to count operations with"
        for name, time in (("draft", runtimes.draft), ("verify", runtimes.verify))
        if time.assumed_tokens
    )
    has_limits = bool(
        (acceptance.lower < acceptance.upper).any() or runtimes.draft.has_limits or runtimes.verify.has_limits
    )
    if robust and not has_limits:
        notes.append("neither acceptance nor runtimes have confidence limits: the worst case is the expected case")

    def worth(accepted: str, draft: Which, verify: Which, verify_time: PassTime = runtimes.verify) -> Floats:
        return goodput(
            acceptance.expected_tokens(drafts, accepted),
            runtimes.draft,
            verify_time,
            max_batch,
            step_overhead_seconds=runtimes.step_overhead_seconds,
            which_draft=draft,
            which_verify=verify,
        )

    fitted = worth("rates", "fitted", "fitted")
    if not np.isfinite(fitted).all():
        raise InvalidInput("runtime: expected passes that take some time, got a step of 0 seconds")
    cases: list[Floats] = []
    if has_limits:
        # more acceptance and faster drafts are always better; a verify pass counts with and without drafts, so there
        # the worst is neither fast nor slow throughout, but cheap alone and dear with drafts
        extremes: tuple[tuple[str, Which], ...] = (("lower", "upper"), ("upper", "lower"))
        values = [worth(*case, "fitted", verify) for verify in runtimes.verify.corners() for case in extremes]
        cases = [value for value in values if np.isfinite(value).all()]  # not where a pass takes no time
    cases.append(fitted)
    judged = np.min([value / value[:, :1] for value in cases], axis=0) if robust else fitted
    ranges = fewest_ranges(judged, loss)

    def means(goodputs: Floats) -> Floats:
        relative = goodputs / goodputs[:, :1]
        return np.array([relative[low - 1 : high, choice].mean() for low, high, choice in ranges])

    limits = None
    if has_limits:
        corners = [means(value) for value in cases]
        limits = tuple(
            zip(np.min(corners, axis=0).tolist(), np.max(corners, axis=0).tolist(), strict=True),
        )
    lost = 1.0 - judged / judged.max(axis=1, keepdims=True)
    return SpeculationTable(
        ranges=tuple(ranges),
        speedup=tuple(means(fitted).tolist()),
        speedup_limits=limits,
        loss=tuple(float(lost[low - 1 : high, choice].max()) for low, high, choice in ranges),
        most_drafts=drafts,
        robust=robust,
        relative=judged / judged[:, :1],
        notes=tuple(notes),
    )
