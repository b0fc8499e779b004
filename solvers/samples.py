"""What the simulators share: quantiles and intervals of samples, and checks of how many there are."""

from __future__ import annotations

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def quantiles(samples: Floats | Ints) -> dict[float, float]:
    """Return the quantiles of samples that are worth showing, by level."""
    values = np.quantile(samples, QUANTILES)
    return {level: float(value) for level, value in zip(QUANTILES, values, strict=True)}


def t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


def check_integer(name: str, value: object, low: int, high: int | None) -> None:
    """Refuse what is no integer in a range.

    Raises
    ------
    InvalidInput
        With the range.
    """
    wrong = isinstance(value, bool) or not isinstance(value, (int, np.integer))
    if wrong or value < low or (high is not None and value > high):  # type: ignore[operator]
        word = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
        raise InvalidInput(f"{name}: expected {word}, got {describe(value)}")
