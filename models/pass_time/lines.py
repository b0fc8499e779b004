"""Runtime of a forward pass against its work: T(b, F) = c1 F b + c2 (paper 1, Eq. 17), or the maximum of such pieces.

One piece is the paper's fit. The maximum of several is the roofline form that measurements follow more
closely: flat while memory traffic dominates, rising once arithmetic does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from specopt.models.fields import Checked, Floats, Ints, NonNegative


@dataclass(frozen=True, kw_only=True)
class LinearRuntime(Checked):
    """T(b, F) = seconds_per_flop F b + overhead_seconds (paper 1, Eq. 17).

    Parameters
    ----------
    seconds_per_flop
        c1, seconds per floating-point operation.
    overhead_seconds
        c2, seconds of a pass without work.
    """

    seconds_per_flop: NonNegative
    overhead_seconds: NonNegative

    @staticmethod
    def is_marked(data: Mapping[str, Any]) -> bool:
        """Return whether JSON-like data means this form."""
        return "pieces" not in data

    @property
    def pieces(self) -> tuple[LinearRuntime, ...]:
        """The affine pieces, whose maximum is the runtime: here itself."""
        return (self,)

    def seconds(self, batch_size: float | Ints, flops: Floats) -> Floats:
        """Return the seconds of forward passes of `flops` operations per task, for a whole batch."""
        return np.asarray(self.seconds_per_flop * flops * batch_size + self.overhead_seconds)


@dataclass(frozen=True, kw_only=True)
class PiecewiseRuntime(Checked):
    """The maximum of several linear runtimes, per forward pass.

    Parameters
    ----------
    pieces
        At least one linear runtime.
    """

    pieces: Annotated[tuple[LinearRuntime, ...], Meta(min_length=1)]

    @staticmethod
    def is_marked(data: Mapping[str, Any]) -> bool:
        """Return whether JSON-like data means this form."""
        return "pieces" in data

    def seconds(self, batch_size: float | Ints, flops: Floats) -> Floats:
        """Return the seconds of forward passes of `flops` operations per task, for a whole batch."""
        return np.asarray(np.max([piece.seconds(batch_size, flops) for piece in self.pieces], axis=0))


Runtime = LinearRuntime | PiecewiseRuntime
