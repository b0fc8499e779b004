"""Acceptance as a function of draft length: the mean number of tokens per step at each length K.

A drafter that fills a whole block in one pass may have lower acceptance at every position of a
longer block. One acceptance rate per position then cannot describe all lengths, and the mean
acceptance length AL(K) may even decrease from one K to the next. Measurements are therefore stored
as a table of AL(K), which includes the token that the verifier adds in each step. The table does
not determine the means for other lengths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Immutable, describe, frozen
from specopt.models.position_acceptance import LEVEL, PositionAcceptance

MAX_LENGTH = 1_000


@dataclass(frozen=True, kw_only=True, eq=False)
class AcceptanceLengths(Immutable):
    """Mean number of tokens per step at each measured draft length.

    The mean includes the token that the server adds in each step.

    Parameters
    ----------
    lengths
        Measured draft lengths K >= 1, in increasing order.
    tokens
        Mean acceptance length AL(K) for each K, at least 1 and at most 1 + K.
    lower
        Lower confidence limit for the mean at each K. If no limit is known, this is the mean.
    upper
        Upper confidence limit for the mean at each K. If no limit is known, this is the mean.
    level
        Confidence level of `lower` and `upper`.
    extrapolate
        Whether to estimate means for lengths between and beyond the measured lengths.
    notes
        Remarks about the measurements that are shown to the user.
    """

    lengths: tuple[int, ...]
    tokens: Floats
    lower: Floats
    upper: Floats
    level: float = LEVEL
    extrapolate: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for length in self.lengths:
            integer("lengths", length, 1, MAX_LENGTH)
        if not self.lengths or list(self.lengths) != sorted(set(self.lengths)):
            raise InvalidInput(
                f"lengths: expected increasing draft lengths, got {describe(list(self.lengths))}"
            )
        most = np.array(self.lengths) + 1.0
        for name in ("tokens", "lower", "upper"):
            values = np.array(getattr(self, name), np.float64)
            if values.shape != most.shape or not ((values >= 1.0) & (values <= most)).all():
                raise InvalidInput(
                    f"{name}: expected 1 to 1 + K tokens for each draft length K, got"
                    f" {describe(values.tolist())}"
                )
            object.__setattr__(self, name, frozen(values))
        if (self.lower > self.tokens).any() or (self.tokens > self.upper).any():
            raise InvalidInput("lower, upper: expected lower <= tokens <= upper")

    @classmethod
    def exactly(cls, tokens: dict[int, float], notes: tuple[str, ...] = ()) -> Self:
        """Build the object from the mean at each draft length, without confidence limits. If a
        longer draft has a lower mean, add a note that says so.
        """
        lengths = tuple(sorted(tokens))
        means = np.array([tokens[length] for length in lengths])
        found = cls(lengths=lengths, tokens=means, lower=means, upper=means)
        falls = np.flatnonzero(np.diff(means) < 0.0)
        if falls.size:
            low = lengths[falls[0]]
            high = lengths[falls[0] + 1]
            notes = (
                *notes,
                (
                    f"a step yields {tokens[low]:.4g} tokens with {low} drafts and"
                    f" {tokens[high]:.4g} with {high}: acceptance depends on the draft length, or"
                    " the means are inaccurate; rates by position cannot describe it"
                ),
            )
        return replace(found, notes=notes)

    @property
    def max_drafts(self) -> int | None:
        """Largest K such that the means for all draft lengths from 1 to K are known, or None if
        means are extrapolated to any draft length.
        """
        if self.extrapolate:
            return None
        known = [length for i, length in enumerate(self.lengths) if length == i + 1]
        return known[-1] if known else 0

    @property
    def has_limits(self) -> bool:
        """Whether any confidence limit differs from the corresponding mean."""
        return bool((self.lower < self.upper).any())

    def expected_tokens(self, longest: int, which: str = "rates") -> Floats:
        """Return the mean number of tokens per step for drafts of 0, 1, ..., `longest` tokens.

        The means include the token that the server adds in each step. Between measured lengths,
        the mean is interpolated linearly. Beyond the longest measured length, each additional draft
        token adds its predecessor's gain times the last measured ratio of successive gains. For
        these lengths, the lower limit assumes a gain of 0, and the upper limit assumes that the
        last measured gain continues.

        Parameters
        ----------
        longest
            Maximum draft length.
        which
            ``"rates"`` for the means; ``"lower"`` or ``"upper"`` for a confidence limit.

        Raises
        ------
        InvalidInput
            If a length was not measured and `extrapolate` is false.
        """
        missing = sorted(set(range(1, longest + 1)) - set(self.lengths))
        if missing and not self.extrapolate:
            raise InvalidInput(
                f"acceptance: drafts of {', '.join(map(str, self.lengths))} tokens were measured,"
                f" but drafts of {missing[0]} were not; allow extrapolation or measure this length"
            )
        lengths = np.array([0, *self.lengths])
        values = np.concatenate(([1.0], self.tokens if which == "rates" else getattr(self, which)))
        asked = np.arange(longest + 1.0)
        tokens = np.interp(asked, lengths, values)
        beyond = np.maximum(0.0, asked - lengths[-1])
        gains = np.maximum(0.0, np.diff(values) / np.diff(lengths))
        before = gains[-2] if len(gains) > 1 else 1.0
        ratio = min(1.0, gains[-1] / before) if before > 0.0 else 0.0
        if which == "upper":
            tokens += beyond * gains[-1]
        elif which == "rates":
            shrunk = np.cumsum(gains[-1] * ratio ** np.arange(1, int(beyond[-1]) + 1))
            tokens[asked > lengths[-1]] += shrunk
        return np.asarray(tokens, np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return the means and limits as JSON-like data that the reader for acceptance files
        accepts.
        """
        data: dict[str, Any] = {
            name: {
                str(length): value
                for length, value in zip(self.lengths, values.tolist(), strict=True)
            }
            for name, values in (
                ("acceptance_lengths", self.tokens),
                ("lower", self.lower),
                ("upper", self.upper),
            )
        }
        data |= {"level": self.level, "extrapolate": self.extrapolate}
        if self.notes:
            data["notes"] = list(self.notes)
        return data


Acceptance = PositionAcceptance | AcceptanceLengths
"""A measured acceptance model, which stores rates by draft position or means by draft length. Both
classes have a method `expected_tokens`.
"""
