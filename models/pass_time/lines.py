"""The runtime of a forward pass: T(b, F) = c1 F b + c2 (paper 1, Eq. 17), a maximum of several such
linear pieces, or a table of measured passes.

The paper fits a single piece. The maximum of several pieces is a roofline, which fits measurements
more closely: the runtime is constant while memory traffic dominates, and increases when arithmetic
dominates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import (
    Checked,
    Floats,
    Ints,
    NonNegative,
    SomeObjects,
    refuse_denormal,
    required,
)
from specopt.models.pass_time.measured import MeasuredPasses, PassTable


@dataclass(frozen=True, kw_only=True)
class LinearRuntime(Checked):
    """A linear runtime: T(b, F) = seconds_per_flop F b + overhead_seconds (paper 1, Eq. 17).

    Parameters
    ----------
    seconds_per_flop
        Time c1 per floating-point operation.
    overhead_seconds
        Constant time c2 per pass.
    """

    seconds_per_flop: NonNegative
    overhead_seconds: NonNegative

    @property
    def pieces(self) -> tuple[LinearRuntime, ...]:
        """Linear pieces whose maximum is the runtime. The only piece is the runtime itself."""
        return (self,)

    def seconds(self, batch_size: float | Ints, flops: Floats) -> Floats:
        """Return the durations of forward passes over a batch with `flops` operations per task, in
        seconds.
        """
        return np.asarray(self.seconds_per_flop * flops * batch_size + self.overhead_seconds)


@dataclass(frozen=True, kw_only=True)
class PiecewiseRuntime(Checked):
    """A runtime that is the maximum of several linear runtimes.

    Parameters
    ----------
    pieces
        Linear runtimes, at least one.
    """

    mark: ClassVar[str] = "pieces"

    pieces: SomeObjects[LinearRuntime] = required()

    def seconds(self, batch_size: float | Ints, flops: Floats) -> Floats:
        """Return the durations of forward passes over a batch with `flops` operations per task, in
        seconds.
        """
        return np.asarray(
            np.max([piece.seconds(batch_size, flops) for piece in self.pieces], axis=0)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class TabledRuntime(Checked):
    """A runtime that interpolates linearly in a table of measured passes. The runtime does not
    depend on the number of operations.

    Parameters
    ----------
    passes
        Table that contains a row for every point of a complete grid. The time must not decrease as
        the work increases.
    """

    mark: ClassVar[str] = "passes"

    passes: PassTable

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_denormal(self.passes, "passes")
        if self.grid.moved > ROUNDING:
            raise InvalidInput(
                "passes.seconds: times must not decrease as the batch size, new tokens or cached"
                " tokens increase; the relative distance to the closest monotone times is"
                f" {self.grid.moved:.2g}"
            )

    @cached_property
    def grid(self) -> MeasuredPasses:
        """Interpolant of the table, ignoring the spread of repeated measurements."""
        return MeasuredPasses.from_table(replace(self.passes, spread=None), "passes")

    @property
    def pieces(self) -> tuple[LinearRuntime, ...]:
        """Raise `Unsupported`, because a table has no linear pieces."""
        raise Unsupported(
            "draft_runtime, verify_runtime: this method does not support measured passes; fit a"
            " line or pieces to them"
        )

    def seconds(self, batch_size: float | Ints, flops: Floats) -> Floats:
        """Raise `Unsupported`, because the times in a table do not depend on `flops`."""
        return self.pieces[0].seconds(batch_size, flops)


ROUNDING = 1e-12
"""Maximum relative difference between times that are treated as equal."""

Runtime = LinearRuntime | PiecewiseRuntime | TabledRuntime


def pass_seconds(
    model: Decoder, runtime: Runtime, size: Any, new: Any, total: Floats, logits: int
) -> Floats:
    """Return the duration, in seconds, of a forward pass over `new` tokens per task, computed by
    Eq. 17 or read from a table.
    """
    if isinstance(runtime, TabledRuntime):
        return runtime.grid.seconds(size, new, total - new)
    return runtime.seconds(size, pass_flops(model, new, total, logits))


def pass_flops(model: Decoder, new: Floats, total: Floats, logits: int) -> Floats:
    """Return the number of operations per task in a forward pass (Eq. 11-12, or exact counts)."""
    return (
        model.flops_per_token * new
        + model.flops_per_token_pair * new * total
        + model.flops_per_logit * logits
    )
