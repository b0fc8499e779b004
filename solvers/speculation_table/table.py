"""The goodput-optimal speculation length of every batch size, in the fewest ranges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

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
"""Value of a choice that may be slower than no speculation in the worst case."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeculationTable:
    """The table and its speed-ups.

    Parameters
    ----------
    ranges
        First and last batch size, both included, and drafts per step; or one range for all with
        None: speculation is best not configured at all.
    speedup
        Mean over the batch sizes of a range of the goodput relative to no speculation, by range.
    speedup_limits
        Lowest and highest mean within the limits of acceptance and runtimes, by range; None without
        limits.
    loss
        Largest share of goodput that is lost compared with the best length of a batch size, by
        range. most_drafts Longest draft that was considered. robust Whether the lengths are best in
        the worst case within the limits. relative Shape (B, K + 1): goodput at every batch size
        with 0..K drafts relative to no speculation; in the worst case if `robust`. notes Notes for
        the reader.
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
        """Return the table as engines are configured with it."""
        return Schedule(
            ranges=self.ranges,
            batches=tuple(range(1, len(self.relative) + 1)),
            speedups=self.relative,
        )

    def worth(self, runtimes: Runtimes, rate: float) -> float:
        """Return the geometric mean of the speed-up over all batch sizes at another constant
        acceptance rate.
        """
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


@dataclass(frozen=True, eq=False)
class Speedups:
    """Goodput relative to that without speculation and its limits, each of shape (B, K + 1)."""

    fitted: Floats
    low: Floats
    high: Floats


def speedups(runtimes: Runtimes, acceptance: Acceptance, requests: int, drafts: int) -> Speedups:
    """Return the speed-ups of 1..B requests with 0..K drafts each.

    A step of b requests with K drafts each yields b E[N_K] tokens; without speculation a step
    yields b. Each pass may lie anywhere within its limits, independently of the others.

    Raises
    ------
    InvalidInput
        If a step takes no time.
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
    # where the lower limit of a step is 0 seconds, drafts cost nothing at best
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
    """Return the goodput-optimal speculation length for every batch size, in the fewest ranges.

    Parameters
    ----------
    runtimes, acceptance
        Runtimes of the two models, and acceptance of the drafts.
    max_batch
        Largest batch; None for the largest measured one, up to 256.
    max_length
        Longest draft; None for the longest with known acceptance and measured passes, or 8.
    loss
        Share of the best goodput that a batch size may lose so that there are fewer ranges.
    robust
        Choose the length with the best speed-up in the worst case within the limits. Do not
        speculate at all if any batch size may then be slower than without speculation.
    extrapolate
        Whether to go beyond the measured range.
    multiple
        Number of which every draft length is a multiple. Engines require this for heads that
        predict several tokens.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or beyond what was measured.
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
    found = SpeculationTable(
        ranges=tuple(ranges),
        speedup=_means(worth.fitted, ranges),
        speedup_limits=(
            tuple(zip(_means(worth.low, ranges), _means(worth.high, ranges), strict=True))
            if has_limits
            else None
        ),
        loss=tuple(float(lost[low - 1 : high, choice].max()) for low, high, choice in ranges),
        most_drafts=drafts,
        robust=robust,
        relative=relative,
        notes=tuple(notes),
    )
    reason = _against(worth, found)
    if not reason:
        return found
    return replace(
        found,
        ranges=((1, requests, None),),
        speedup=(1.0,),
        speedup_limits=((1.0, 1.0),) if has_limits else None,
        loss=(0.0,),
        notes=(*found.notes, reason),
    )


def break_even(runtimes: Runtimes, requests: int, drafts: int, multiple: int = 1) -> float | None:
    """Return the constant acceptance rate above which drafts pay off on average over 1..B requests;
    None if they never do.
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


def _means(values: Floats, ranges: list[tuple[int, int, int]]) -> tuple[float, ...]:
    return tuple(float(values[low - 1 : high, choice].mean()) for low, high, choice in ranges)


def _against(worth: Speedups, found: SpeculationTable) -> str:
    """Return why an engine should not be set up to speculate; empty if it should."""
    speculates = any(drafts for *_, drafts in found.ranges)
    if not found.robust:
        logs = [np.log(worth.fitted[low - 1 : high, k or 0]) for low, high, k in found.ranges]
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
        f"no draft length is safe: at batch size {at + 1} the best one, {drafts} drafts, may be"
        f" slower than no speculation ({best[at]:.2f}x in the worst case,"
        f" {worth.fitted[at, drafts]:.2f}x expected)"
    )
    pays = _leading(best >= 1.0)
    return text + (f"; up to batch size {pays} it is safe: use --max-batch {pays}" if pays else "")


def _sizes(
    runtimes: Runtimes,
    acceptance: Acceptance,
    max_batch: int | None,
    max_length: int | None,
    extrapolate: bool,
    notes: list[str],
) -> tuple[int, int]:
    """Return the largest batch and the longest draft within the known range."""
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
        drafts = max(1, known)  # 1 where not even that is known: refused by the acceptance
    requests = DEFAULT_REQUESTS if max_batch is None else max_batch
    inside = runtimes.covers(requests, drafts)
    if inside.all():
        return requests, drafts
    if extrapolate:
        notes.append(
            f"extrapolated beyond the measured range ({runtimes.measured}), where the limits"
            f" do not hold"
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
        f"limited to batches up to {largest} and drafts up to {longest}, the measured range"
        f" ({runtimes.measured})"
    )
    return largest, longest


def _leading(truths: Any) -> int:
    """Return the number of entries before the first False."""
    return int(np.cumprod(truths).sum())
