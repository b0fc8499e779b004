"""The delay of a batch in the cloud as a piecewise-linear function of its number of tokens.

The function is specified by its values at points called knots (paper 4, Eq. 2 and Fig. 1).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Column,
    Floats,
    FloatsLike,
    Given,
    NonNegative,
    dump,
    required,
)

Knots = Given[Annotated[Floats, Column(NonNegative, "knot", 2)], FloatsLike]


@dataclass(frozen=True, kw_only=True, eq=False)
class CloudDelay(Checked):
    """The delay g(m), in seconds, of a batch of m tokens on one GPU in the cloud.

    The delay is linear between knots. Before the first knot, the delay is constant. After the last
    knot, the delay continues with the slope between the last two knots.

    Parameters
    ----------
    tokens
        Number of tokens at each knot, in increasing order, shape (n,). At least two knots are
        required.
    seconds
        Delay at each knot in seconds, shape (n,). The delays must not decrease.
    """

    tokens: Knots = required()
    seconds: Knots = required()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, values, step in (
            ("tokens", self.tokens, "more"),
            ("seconds", self.seconds, "no less"),
        ):
            rises = np.diff(values)
            wrong = rises <= 0 if step == "more" else rises < 0
            if wrong.any():
                at = int(np.argmax(wrong)) + 1
                raise InvalidInput(
                    f"{name}[{at}]: expected {step} than the previous value,"
                    f" {values[at - 1]:g}, got"
                    f" {values[at]:g}"
                )
        if not np.isfinite(self.slopes).all():
            raise InvalidInput(
                "tokens: the knots are too close together; the slopes between them must be finite"
            )

    @property
    def slopes(self) -> Floats:
        """Slope between consecutive knots, in seconds per token, shape (n - 1,)."""
        with np.errstate(over="ignore"):
            found: Floats = np.diff(self.seconds) / np.diff(self.tokens)
        return found

    @cached_property
    def _knots(self) -> tuple[list[float], list[float]]:
        return self.tokens.tolist(), self.seconds.tolist()

    def at(self, tokens: float) -> float:
        """Return the delay g(m) of a batch of m = `tokens` tokens, in seconds. The number of tokens
        may be fractional, for example a mean.
        """
        x, y = self._knots
        if tokens <= x[0]:
            return y[0]
        k = min(bisect_left(x, tokens), len(x) - 1)
        return float(y[k - 1] + (y[k] - y[k - 1]) / (x[k] - x[k - 1]) * (tokens - x[k - 1]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CloudDelay) and dump(self) == dump(other)

    __hash__ = None  # type: ignore[assignment]  # contains arrays
