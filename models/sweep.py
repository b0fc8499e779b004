"""Data types for sweeps, which are measurements of an engine's throughput at several loads and
draft lengths. A sweep is the input to `specopt tune`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from specopt.models.arguments import integer, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe, refuse_denormal

BLOCKS = ("dflash", "dspark", "domino", "p-eagle", "peagle", "pard", "medusa")
"""Substrings of drafter names. A drafter whose name contains one of them drafts a whole block in
one pass.
"""

MAX_CONCURRENCY = 65_536
MAX_DRAFTS = 1_000
MAX_ROWS = 2_000

TPOT = {"mean": "mean_tpot_ms", "p50": "p50_tpot_ms", "p99": "p99_tpot_ms"}
ALSO = (
    *TPOT.values(),
    "mean_ttft_ms",
    "output_tokens",
    "joules_per_token",
    "joules_per_request",
    "watts",
)
"""Names of the optional values that may be measured in a run."""


@dataclass(frozen=True, order=True)
class Condition:
    """A load under which the engine was measured.

    Parameters
    ----------
    concurrency
        Number of concurrent requests.
    workload
        Name of the workload. The name is empty if there is only one workload.
    context_tokens
        Number of context tokens per request, or 0 if it is not known.
    """

    concurrency: int
    workload: str = ""
    context_tokens: int = 0


@dataclass(frozen=True, order=True)
class Setup:
    """A drafting configuration of the engine, without the draft length.

    Parameters
    ----------
    drafter
        Name of the drafter. The name is empty if there is only one drafter.
    mode
        Rule by which the engine chooses draft lengths. In mode "fixed", every draft has the
        configured length. In other modes, such as "adaptive", the configured length is a maximum.
    topk
        Number of candidates per position. Drafts are trees if this number is greater than 1.
    """

    drafter: str = ""
    mode: str = "fixed"
    topk: int = 1

    @property
    def is_sequential(self) -> bool:
        """Whether tokens are drafted one at a time and all drafts have the same length. Drafters
        that draft trees or whole blocks are not sequential.
        """
        blocks = any(name in self.drafter.lower() for name in BLOCKS)
        return self.topk == 1 and self.mode == "fixed" and not blocks


ONLY = Setup()
"""Setup of all runs in a sweep that does not specify setups."""


@dataclass(frozen=True)
class Point:
    """A measured configuration: a load and a draft length.

    Parameters
    ----------
    condition
        Load on the engine.
    draft_length
        Number of tokens drafted per step. The value 0 means that speculation is enabled but no
        tokens are drafted, and None means that speculation is disabled.
    """

    condition: Condition
    draft_length: int | None


@dataclass(frozen=True)
class Measurement:
    """The values measured in one run of the engine.

    Parameters
    ----------
    point
        Load and draft length of the run.
    tokens_per_second
        Total number of output tokens per second over all requests, or None if only the acceptance
        length is known.
    acceptance_length
        Mean number of tokens per step, including the token that the engine adds. None means that
        the engine did not report it.
    setup
        Setup of the run.
    also
        Mapping from names in `ALSO` to other measured values.
    """

    point: Point
    tokens_per_second: float | None
    acceptance_length: float | None = None
    setup: Setup = ONLY
    also: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        condition = self.point.condition
        length = self.point.draft_length
        integer("concurrency", condition.concurrency, 1, MAX_CONCURRENCY)
        integer("context_tokens", condition.context_tokens, 0, MAX_TOKENS)
        if length is not None:
            integer("draft_length", length, 0, MAX_DRAFTS)
        integer("topk", self.setup.topk, 1, MAX_DRAFTS)
        for name, value in self.also.items():
            number(name, value, above=0, below=1e18)
        if self.tokens_per_second is not None:
            speed = number("output_tokens_per_second", self.tokens_per_second, above=0, below=1e18)
            refuse_denormal(speed, "output_tokens_per_second")
        if self.acceptance_length is not None:
            most = (length or 0) + 1
            found = number("mean_acceptance_length", self.acceptance_length, 1)
            if found > most * (1 + 1e-9):
                raise InvalidInput(
                    f"mean_acceptance_length: expected at most {most}, the maximum per step with"
                    f" draft_length {'none' if length is None else length}, got {describe(found)}"
                )
        if self.tokens_per_second is None and (self.acceptance_length is None or not length):
            raise InvalidInput(
                "output_tokens_per_second: missing; required when there is no acceptance"
                " length from which to predict it"
            )


@dataclass(frozen=True)
class Sweep:
    """A collection of runs of one engine on one machine. Runs with the same point and setup are
    repetitions.

    Parameters
    ----------
    measurements
        Runs of the engine. At least one is required.
    notes
        Remarks that are shown to the user, for example about rows that were omitted.
    zero_is_none
        Whether `with_none` has used runs with draft length 0 in place of missing runs without
        speculation.
    relative
        Draft length that `with_none` has chosen as the baseline because there are no runs without
        speculation. None means that such runs exist or that no baseline has been chosen.
    unit
        Unit of the values in `tokens_per_second`.
    """

    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()
    zero_is_none: bool = False
    relative: int | None = None
    unit: str = "tokens per second"

    def __post_init__(self) -> None:
        if not 0 < len(self.measurements) <= MAX_ROWS:
            raise InvalidInput(
                f"sweep: expected 1 to {MAX_ROWS:,} measurements, got {len(self.measurements):,}"
            )
        said = {m.point.condition.context_tokens > 0 for m in self.measurements}
        if len(said) > 1:
            raise InvalidInput("context_tokens: specify it in all rows or in none")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All distinct loads in the sweep, in sorted order."""
        return tuple(sorted({m.point.condition for m in self.measurements}))

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of all workloads in the sweep, in alphabetical order."""
        return tuple(sorted({m.point.condition.workload for m in self.measurements}))

    @property
    def draft_lengths(self) -> tuple[int, ...]:
        """All draft lengths in runs with speculation, in increasing order."""
        lengths = {m.point.draft_length for m in self.measurements}
        return tuple(sorted(length for length in lengths if length is not None))

    @property
    def setups(self) -> tuple[Setup, ...]:
        """All distinct setups in runs with speculation, in sorted order. If there are no such runs,
        the tuple contains the default setup.
        """
        drafting = {m.setup for m in self.measurements if m.point.draft_length is not None}
        return tuple(sorted(drafting)) or (ONLY,)

    def of(self, setup: Setup) -> Sweep:
        """Return a sweep that contains only the runs with one setup, and runs without speculation
        for comparison. If a run without speculation specifies a drafter, it is included only if the
        drafter is the same.
        """
        kept = [
            m
            for m in self.measurements
            if m.setup == setup
            or (m.point.draft_length is None and m.setup.drafter in ("", setup.drafter))
        ]
        return replace(self, measurements=tuple(kept))

    def per_joule(self) -> Sweep:
        """Return a sweep whose throughput values are in tokens (or requests) per joule instead of
        tokens per second. Runs that do not report energy are omitted.

        Raises
        ------
        InvalidInput
            If no run reports energy.
        """
        kept = [
            replace(m, tokens_per_second=per) for m in self.measurements if (per := _per_joule(m))
        ]
        if not kept:
            raise InvalidInput(
                "--per joule: the sweep has no energy data; add a column joules_per_token,"
                " joules_per_request or watts"
            )
        lost = len(self.measurements) - len(kept)
        notes = (
            *self.notes,
            *([f"number of runs omitted for lack of energy data: {lost}"] if lost else ()),
        )
        return replace(self, measurements=tuple(kept), notes=notes, unit=self.energy)

    @property
    def energy(self) -> str:
        """Unit of energy efficiency. This is "tokens per joule", or "requests per joule" if the
        number of tokens per request is not known.
        """
        known = all(
            "joules_per_token" in m.also or "watts" in m.also or "output_tokens" in m.also
            for m in self.measurements
            if "joules_per_request" in m.also
        )
        return "tokens per joule" if known else "requests per joule"

    def front(self, workload: str | None = None) -> list[dict[str, object]]:
        """Return the Pareto front of setups and draft lengths for throughput and energy efficiency.

        Each row of the result contains a setup, a draft length, and the geometric means of tokens
        per second and tokens (or requests) per joule. The fastest option comes first. If a workload
        is given, the means include only its measurements.
        """
        found: dict[tuple[Setup, int | None], list[tuple[float, float]]] = defaultdict(list)
        for m in self.measurements:
            is_asked = workload in (None, m.point.condition.workload)
            if is_asked and (per := _per_joule(m)) and m.tokens_per_second:
                found[m.setup, m.point.draft_length].append((m.tokens_per_second, per))
        means = [
            (*option, *np.exp(np.log(pairs).mean(axis=0)).tolist())
            for option, pairs in found.items()
        ]
        rows: list[dict[str, object]] = []
        most, unit = 0.0, self.energy.replace(" ", "_")
        for setup, length, speed, per in sorted(means, key=lambda one: (-one[2], -one[3])):
            if per > most:
                most = per
                name = "none" if length is None else length
                rows.append(
                    {**vars(setup), "draft_length": name, "tokens_per_second": speed, unit: per}
                )
        return rows

    def with_none(self) -> Sweep:
        """Return a sweep that has a baseline with which draft lengths can be compared.

        The baseline consists of the runs without speculation. If there are none, it consists of the
        runs with draft length 0 or, if that length was not measured, with the draft length that has
        the most runs. Ties go to the fastest length.
        """
        lengths = {m.point.draft_length for m in self.measurements}
        if None in lengths or self.relative is not None or not any(self.draft_lengths):
            return self
        base = 0 if 0 in lengths else self._fastest()
        note = (
            "no row is without speculation (draft_length none), so the baseline is draft_length"
            f" {base}"
        )
        if base == 0:
            rows = [
                (
                    replace(m, point=Point(m.point.condition, None), setup=ONLY)
                    if m.point.draft_length == 0
                    else m
                )
                for m in self.measurements
            ]
            return replace(
                self, measurements=tuple(rows), notes=(*self.notes, note), zero_is_none=True
            )
        note += (
            ", the fastest constant length; the sweep does not show whether speculation pays off"
        )
        return replace(self, notes=(*self.notes, note), relative=base)

    def _fastest(self) -> int:
        """Return the draft length that serves as the baseline if all runs use speculation.

        This is the length with the largest number of runs. Ties go to the length with the largest
        geometric mean of the throughput.
        """
        logs: dict[int, list[float]] = defaultdict(list)
        for m in self.measurements:
            logs[m.point.draft_length or 0].append(float(np.log(m.tokens_per_second or 1.0)))
        return max(logs, key=lambda length: (len(logs[length]), np.mean(logs[length])))


def _per_joule(one: Measurement) -> float | None:
    also, speed = one.also, one.tokens_per_second
    if "joules_per_token" in also:
        return 1.0 / also["joules_per_token"]
    if "joules_per_request" in also:
        return also.get("output_tokens", 1.0) / also["joules_per_request"]
    return speed / also["watts"] if "watts" in also and speed else None
