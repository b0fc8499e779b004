"""Computation of speculation tables from runtimes and acceptance.

A table contains a draft length with nearly the best goodput for every batch size, in as few ranges
as possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from specopt.models.acceptance_lengths import Acceptance
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.models.position_acceptance import PositionAcceptance
from specopt.solvers.speculation_table.ranges import fewest_ranges
from specopt.solvers.speculation_table.runtimes import Runtimes
from specopt.solvers.speculation_table.schedule import Range, Schedule

MAX_REQUESTS = 65_536
MAX_DRAFTS = 1_000
DEFAULT_REQUESTS = 256
DEFAULT_DRAFTS = 8

NEVER = 1e-300
"""Value that excludes a choice from a table.

For example, a draft length is excluded if it may be slower than no speculation in the worst case.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeculationTable:
    """A speculation table with its predicted speed-ups.

    Parameters
    ----------
    ranges
        First and last batch size (inclusive), and number of drafts per step, for each range. A
        single range with None as the number of drafts means that speculation should not be enabled.
    speedup
        Goodput relative to no speculation, averaged over the batch sizes of each range.
    speedup_limits
        Lower and upper limits of the mean speed-up of each range, within the confidence limits of
        acceptance and runtimes. None if there are no confidence limits.
    loss
        Maximum share of goodput lost compared with the best draft length, for each range.
    most_drafts
        Maximum draft length that was considered.
    robust
        Whether the draft lengths are optimal in the worst case within the confidence limits.
    relative
        Goodput with 0..K drafts relative to no speculation, with shape (B, K + 1). If `robust` is
        True, the values are those of the worst case.
    notes
        Remarks on the result, for users.
    """

    ranges: tuple[Range, ...]
    speedup: tuple[float, ...]
    speedup_limits: tuple[tuple[float, float], ...] | None
    loss: tuple[float, ...]
    most_drafts: int
    robust: bool
    relative: Floats
    notes: tuple[str, ...]

    def schedule(self) -> Schedule:
        """Return the table as a schedule, in the form from which engines are configured."""
        return Schedule(
            ranges=self.ranges,
            batches=tuple(range(1, len(self.relative) + 1)),
            speedups=self.relative,
        )

    def worth(self, runtimes: Runtimes, rate: float) -> float:
        """Return the geometric mean speed-up over all batch sizes at a constant acceptance rate."""
        sizes, drafts = self.relative.shape
        known = speedups(runtimes, PositionAcceptance.constant(rate), sizes, drafts - 1).fitted
        return replace(self.schedule(), speedups=known).mean_speedup() or 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the table and its speed-ups as JSON-like data."""
        limits = self.speedup_limits or ((None, None),) * len(self.ranges)
        columns = zip(self.ranges, self.speedup, limits, self.loss, strict=True)
        return {
            "ranges": [
                {
                    "batch": batch,
                    "num_speculative_tokens": choice,
                    "speedup": speedup,
                    "speedup_low": least,
                    "speedup_high": most,
                    "largest_loss": loss,
                }
                for (*batch, choice), speedup, (least, most), loss in columns
            ],
            "robust": self.robust,
            "max_length": self.most_drafts,
            "notes": list(self.notes),
        }


class Speedups(NamedTuple):
    """Goodput relative to no speculation, with its lower and upper limits.

    Each array has shape (B, K + 1), for batch sizes 1..B and 0..K drafts.
    """

    fitted: Floats
    low: Floats
    high: Floats


def speedups(runtimes: Runtimes, acceptance: Acceptance, requests: int, drafts: int) -> Speedups:
    """Return the predicted speed-ups for batches of 1..B requests with 0..K drafts per request.

    A step of b requests with K drafts per request yields b E[N_K] tokens on average, and a step
    without speculation yields b tokens. The duration of each pass may lie anywhere within its
    limits, independently of the other passes.

    Raises
    ------
    InvalidInput
        If some step has a duration of 0 seconds.
    """
    rates, lower, upper = (
        acceptance.expected_tokens(drafts, which) for which in ("rates", "lower", "upper")
    )
    alone, speculating = runtimes.seconds(requests, drafts)
    if not (speculating > 0.0).all():
        raise InvalidInput("runtime: a step must take more than 0 seconds, got a step of 0 seconds")
    fitted = rates * alone.mean(axis=0) / speculating.mean(axis=0)
    alone_low, fast = runtimes.seconds(requests, drafts, "lower")
    alone_high, slow = runtimes.seconds(requests, drafts, "upper")
    low = (lower * alone_low / slow).min(axis=0)
    # If the lower limit of a step is 0 seconds, drafts are free in the best case.
    usual = upper * np.ones_like(fast)
    high = np.divide(upper * alone_high, fast, out=usual, where=fast > 0.0).max(axis=0)
    least, most = runtimes.zero_draft_cost
    low[:, 0], high[:, 0] = 1.0 - most, 1.0 - least  # the same pass in either case
    return Speedups(fitted, np.minimum(low, fitted), np.maximum(high, fitted))


def speculation_table(
    runtimes: Runtimes,
    acceptance: Acceptance,
    *,
    max_batch: int | None = None,
    max_length: int | None = None,
    loss: float = 0.01,
    robust: bool = False,
    extrapolate: bool = False,
    multiple: int = 1,
) -> SpeculationTable:
    """Compute a speculation table with as few ranges as possible.

    At every batch size, the goodput is close to that of the best draft length.

    Parameters
    ----------
    runtimes
        Runtimes of the drafter and of the verify model.
    acceptance
        Acceptance of the drafts.
    max_batch
        Maximum batch size, or None for the largest measured batch size, up to 256.
    max_length
        Maximum draft length. None selects the longest draft with known acceptance and measured
        passes. If acceptance is known for all lengths, the maximum is then at most 8.
    loss
        Maximum share of the best goodput that may be lost at a batch size to reduce the number of
        ranges.
    robust
        Whether to maximise the speed-up in the worst case within the confidence limits. If some
        batch size may still be slower than without speculation, speculation is not enabled.
    extrapolate
        Whether to allow batch sizes and drafts beyond the measured range.
    multiple
        Number of which all draft lengths must be multiples. Some engines require this for drafters
        with several heads.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain or outside the measured range.
    """
    notes = [*acceptance.notes, *runtimes.notes]
    requests, drafts = _sizes(runtimes, acceptance, max_batch, max_length, extrapolate, notes)
    has_limits = acceptance.has_limits or runtimes.has_limits
    if robust and not has_limits:
        notes.append(
            "neither acceptance nor runtimes have confidence limits, so the worst case equals the"
            " expected case"
        )
    if drafts < multiple:
        raise InvalidInput(
            f"max_length: expected at least {multiple}, the number of heads, got {drafts}"
        )
    worth = speedups(runtimes, acceptance, requests, drafts)
    relative = worth.low if robust else worth.fitted
    able = np.arange(drafts + 1) % multiple == 0
    judged = np.where(able & (relative >= 1.0 if robust else True), relative, NEVER)
    ranges = fewest_ranges(judged, loss)
    lost = 1.0 - judged / judged.max(axis=1, keepdims=True)
    rows: list[tuple[Range, float, tuple[float, float], float]] = []
    for low, high, choice in ranges:
        at = slice(low - 1, high), choice
        fitted, least, most = (float(of[at].mean()) for of in worth)
        rows.append(((low, high, choice), fitted, (least, most), float(lost[at].max())))
    if reason := _against(worth, ranges, robust):
        notes.append(reason)
        rows = [((1, requests, None), 1.0, (1.0, 1.0), 0.0)]
    drafted, speedup, limits, losses = zip(*rows, strict=True)
    return SpeculationTable(
        ranges=drafted,
        speedup=speedup,
        speedup_limits=limits if has_limits else None,
        loss=losses,
        most_drafts=drafts,
        robust=robust,
        relative=relative,
        notes=tuple(notes),
    )


def break_even(runtimes: Runtimes, requests: int, drafts: int, multiple: int = 1) -> float | None:
    """Return the constant acceptance rate above which drafts pay off.

    The criterion is the mean over 1..B requests of the log speed-up with the best draft length. The
    result is None if drafts never pay off.
    """

    def pays(rate: float) -> bool:
        worth = speedups(runtimes, PositionAcceptance.constant(rate), requests, drafts).fitted
        return float(np.log(worth[:, ::multiple].max(axis=1)).mean()) > 0.0

    low, high = 0.0, 1.0
    if not pays(high):
        return None
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high


def _against(worth: Speedups, ranges: list[tuple[int, int, int]], robust: bool) -> str:
    """Return the reason why speculation should not be enabled, or an empty string."""
    speculates = any(drafts for *_, drafts in ranges)
    if not robust:
        logs = [np.log(worth.fitted[low - 1 : high, k]) for low, high, k in ranges]
        mean = float(np.exp(np.concatenate(logs).mean()))
        if mean > 1.0 and speculates:
            return ""
        return f"speculation does not pay off: at best, the mean speed-up is {mean:.2f}x"
    if speculates and (worth.low.max(axis=1) >= 1.0).all():
        return ""
    best = worth.low[:, 1:].max(axis=1)
    at = int(np.argmin(best))
    drafts = 1 + int(np.argmax(worth.low[at, 1:]))
    text = (
        f"no draft length is safe: at batch size {at + 1}, even the best length, {drafts}, may be"
        f" slower than no speculation ({best[at]:.2f}x in the worst case,"
        f" {worth.fitted[at, drafts]:.2f}x expected)"
    )
    pays = _leading(best >= 1.0)
    return text + (
        f"; up to batch size {pays}, drafts are safe; use --max-batch {pays}" if pays else ""
    )


def _sizes(
    runtimes: Runtimes,
    acceptance: Acceptance,
    max_batch: int | None,
    max_length: int | None,
    extrapolate: bool,
    notes: list[str],
) -> tuple[int, int]:
    """Return the maximum batch size and the maximum draft length within the known range."""
    if max_batch is not None:
        integer("max_batch", max_batch, 1, MAX_REQUESTS)
    if max_length is not None:
        integer("max_length", max_length, 1, MAX_DRAFTS)
    known = acceptance.max_drafts
    drafts = (known or DEFAULT_DRAFTS) if max_length is None else max_length
    if known is not None and drafts > known:
        notes.append(
            f"acceptance is known for {known} draft positions, so longer drafts were not considered"
        )
        drafts = max(1, known)  # if even 1 draft is unknown, the acceptance raises an error
    requests = DEFAULT_REQUESTS if max_batch is None else max_batch
    inside = runtimes.covers(requests, drafts)
    if inside.all():
        return requests, drafts
    if extrapolate:
        notes.append(
            f"the table is extrapolated beyond the measured range ({runtimes.measured}), where the"
            " limits do not hold"
        )
        return requests, drafts
    longest = _leading(np.all(inside[: 1 if max_batch is None else requests], axis=0)) - 1
    if longest < (1 if max_length is None else drafts):
        asked = (
            f"batches up to {requests} and drafts up to {drafts}"
            if max_batch or max_length
            else "a batch of 1"
        )
        raise InvalidInput(
            f"max_batch, max_length: expected the measured range ({runtimes.measured}; contexts of"
            f" {', '.join(f'{one:g}' for one in runtimes.contexts)} tokens), got {asked};"
            " to go beyond it, use --extrapolate"
        )
    largest = _leading(np.all(inside[:, : longest + 1], axis=1))
    notes.append(
        f"the table is limited to batches up to {largest} and drafts up to {longest}, the measured"
        f" range ({runtimes.measured})"
    )
    return largest, longest


def _leading(truths: Any) -> int:
    """Return the number of leading entries of a Boolean array that are True."""
    return int(np.cumprod(truths).sum())
