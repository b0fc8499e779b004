"""Runtimes of forward passes: linear functions, maxima of linear functions, and tables.

Paper 1 fits a linear function T(b, F) = c1 F b + c2 (Eq. 17). The maximum of several linear
functions is a roofline, which fits measurements more closely: the runtime is constant while memory
traffic dominates, and increases when arithmetic dominates. A table contains measured passes.
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
    """A runtime that is linear in the number of operations (paper 1, Eq. 17).

    A pass over b sequences with F operations each takes T(b, F) = seconds_per_flop F b +
    overhead_seconds.

    Parameters
    ----------
    seconds_per_flop
        Time c1 per floating-point operation, in seconds.
    overhead_seconds
        Constant time c2 per pass, in seconds.
    """

    seconds_per_flop: NonNegative
    overhead_seconds: NonNegative

    @property
    def pieces(self) -> tuple[LinearRuntime, ...]:
        """Linear functions whose maximum is the runtime. The only piece of a linear runtime is the
        runtime itself.
        """
        return (self,)

    def seconds(self, batch_size: float | Ints, flops: Floats) -> Floats:
        """Return the duration of each forward pass, in seconds. A pass processes `batch_size`
        tasks with `flops` operations per task.
        """
        return np.asarray(self.seconds_per_flop * flops * batch_size + self.overhead_seconds)


@dataclass(frozen=True, kw_only=True)
class PiecewiseRuntime(Checked):
    """A runtime that is the maximum of several linear runtimes.

    Parameters
    ----------
    pieces
        Linear runtimes. At least one is required.
    """

    mark: ClassVar[str] = "pieces"

    pieces: SomeObjects[LinearRuntime] = required()

    def seconds(self, batch_size: float | Ints, flops: Floats) -> Floats:
        """Return the duration of each forward pass, in seconds. A pass processes `batch_size`
        tasks with `flops` operations per task.
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
        Table with one row for every point of a complete grid. The time must not decrease as the
        batch size, new tokens or cached tokens increase.
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
        """Interpolant for the table's times. The spread of repeated measurements is ignored."""
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
"""Maximum relative difference between two times that are treated as equal."""

Runtime = LinearRuntime | PiecewiseRuntime | TabledRuntime


def pass_seconds(
    model: Decoder, runtime: Runtime, size: Any, new: Any, total: Floats, logits: int
) -> Floats:
    """Return the duration of a forward pass in seconds, from its operations (Eq. 17) or a table.

    Parameters
    ----------
    model
        Decoder that determines the number of operations.
    runtime
        Runtime of a forward pass.
    size
        Number of tasks in the batch.
    new
        Number of new tokens per task.
    total
        Total number of cached and new tokens per task.
    logits
        Number of positions per task at which logits are computed.
    """
    if isinstance(runtime, TabledRuntime):
        return runtime.grid.seconds(size, new, total - new)
    return runtime.seconds(size, pass_flops(model, new, total, logits))


def pass_flops(model: Decoder, new: Floats, total: Floats, logits: int) -> Floats:
    """Return the number of operations per task in a forward pass over `new` tokens per task. The
    counts are exact or follow Eq. 11-12, depending on the decoder class.
    """
    return (
        model.flops_per_token * new
        + model.flops_per_token_pair * new * total
        + model.flops_per_logit * logits
    )
