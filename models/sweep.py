"""Measured throughput of an engine by load and draft length: what `specopt tune` chooses from."""

from __future__ import annotations

from dataclasses import dataclass, field

from specopt.models.arguments import integer, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe, refuse_denormal

MAX_CONCURRENCY = 65_536
MAX_DRAFTS = 1_000
MAX_ROWS = 2_000


@dataclass(frozen=True, order=True)
class Condition:
    """A load on the engine.

    Parameters
    ----------
    concurrency
        Requests at a time.
    workload
        Name of what they ask for; empty: there is only one.
    context_tokens
        Tokens of their context; 0: not said.
    """

    concurrency: int
    workload: str = ""
    context_tokens: int = 0


@dataclass(frozen=True)
class Point:
    """What can be measured: a load, and drafts per step.

    Parameters
    ----------
    condition
        The load.
    draft_length
        Tokens drafted per step; 0: the engine speculates, yet drafts nothing; None: no speculation is configured.
    """

    condition: Condition
    draft_length: int | None


@dataclass(frozen=True)
class Measurement:
    """A run of the engine.

    Parameters
    ----------
    point
        What was run.
    tokens_per_second
        Output of all requests together; None where only the acceptance is known.
    acceptance_length
        Mean tokens of a step, the engine's own included; None: not reported.
    """

    point: Point
    tokens_per_second: float | None
    acceptance_length: float | None = None

    def __post_init__(self) -> None:
        condition, length = self.point.condition, self.point.draft_length
        integer("concurrency", condition.concurrency, 1, MAX_CONCURRENCY)
        integer("context_tokens", condition.context_tokens, 0, MAX_TOKENS)
        if length is not None:
            integer("draft_length", length, 0, MAX_DRAFTS)
        if self.tokens_per_second is not None:
            speed = number("output_tokens_per_second", self.tokens_per_second, above=0, below=1e18)
            refuse_denormal(speed, "output_tokens_per_second")
        if self.acceptance_length is not None:
            most = (length or 0) + 1
            found = number("mean_acceptance_length", self.acceptance_length, 1)
            if found > most * (1 + 1e-9):
                raise InvalidInput(
                    f"mean_acceptance_length: expected at most {most}, the tokens of a step with draft_length "
                    f"{'none' if length is None else length}, got {describe(found)}"
                )
        if self.tokens_per_second is None and (self.acceptance_length is None or not length):
            raise InvalidInput("output_tokens_per_second: expected a number where no acceptance length is given either")


@dataclass(frozen=True)
class Sweep:
    """Runs of one engine on one machine; repeated points are repetitions.

    Parameters
    ----------
    measurements
        The runs, at least one.
    notes
        What a reader should know, such as rows that were dropped.
    zero_is_none
        Whether draft length 0 was measured and stands for no speculation; see `with_none`.
    """

    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...] = field(default=())
    zero_is_none: bool = False

    def __post_init__(self) -> None:
        if not 0 < len(self.measurements) <= MAX_ROWS:
            raise InvalidInput(f"sweep: expected 1 to {MAX_ROWS:,} measurements, got {len(self.measurements):,}")
        said = {m.point.condition.context_tokens > 0 for m in self.measurements}
        if len(said) > 1:
            raise InvalidInput("context_tokens: expected it in every row, or in none")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The loads, sorted."""
        return tuple(sorted({m.point.condition for m in self.measurements}))

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the workloads, sorted."""
        return tuple(sorted({m.point.condition.workload for m in self.measurements}))

    @property
    def draft_lengths(self) -> tuple[int, ...]:
        """Draft lengths measured in a speculating engine, sorted."""
        lengths = {m.point.draft_length for m in self.measurements}
        return tuple(sorted(length for length in lengths if length is not None))

    def with_none(self) -> Sweep:
        """Return the sweep with draft length 0 taken for no speculation if nothing was measured without."""
        lengths = {m.point.draft_length for m in self.measurements}
        if None in lengths or 0 not in lengths:
            return self
        note = "no row without speculation (draft_length none): draft_length 0 is taken for it"
        return Sweep(tuple(map(_without, self.measurements)), (*self.notes, note), zero_is_none=True)


def _without(measurement: Measurement) -> Measurement:
    point = measurement.point
    if point.draft_length != 0:
        return measurement
    return Measurement(Point(point.condition, None), measurement.tokens_per_second, measurement.acceptance_length)
