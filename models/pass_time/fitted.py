"""Pass times that were fitted to measurements. The duration of a pass is a maximum of linear
functions of its work; the coefficients have limits, and the misfit is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from specopt.models.decoder import Decoder
from specopt.models.fields import Floats, Truths
from specopt.models.pass_time.additive import features
from specopt.models.pass_time.pass_time import PassTime, Which, interval

BATCH = "batch"
"""Name under which a fit may report the measured range of the batch size, in addition to the ranges
of its features.
"""


class Work(ABC):
    """Base class for the features of a pass. The coefficients of a form multiply these features."""

    ranged: tuple[str, ...]
    """Names of the features for which a fit reports the measured range."""

    @abstractmethod
    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features of passes along the last axis, with those in `ranged` first."""

    def upper_features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return upper bounds on the features, for fits that may have counted more work."""
        return self.features(batch, new_tokens, cached_tokens)


class Tokens(Work):
    """Three features: the batch's new tokens, the constant 1, and the batch's cached tokens."""

    ranged = ("tokens",)

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features; see `Work.features`."""
        return np.stack(
            np.broadcast_arrays(batch * new_tokens, 1.0, batch * cached_tokens), axis=-1
        )


@dataclass(frozen=True)
class Operations(Work):
    """Three features: the batch's operations, the constant 1, and the batch's cached tokens.

    Each pass reads the cache of each request once, regardless of the number of new tokens. If
    reading has no coefficient of its own, reading the cache is assumed to cost as much as the
    attention of one new token.

    Parameters
    ----------
    decoder
        Decoder that converts tokens into operations.
    all_logits
        Whether logits are needed at every new position, as in verification, or only at the last
        position.
    attends
        Whether attention to the cached tokens is counted as operations; otherwise, cached tokens
        have a separate coefficient.
    """

    decoder: Decoder
    all_logits: bool
    attends: bool

    ranged = ("flops",)

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features; see `Work.features`."""
        return self._with(cached_tokens if self.attends else 0.0, batch, new_tokens, cached_tokens)

    def upper_features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features, counting the attention of every new token to the cache, because fits
        count operations in this way.
        """
        pairs = new_tokens * cached_tokens if self.attends else 0.0
        return self._with(pairs, batch, new_tokens, cached_tokens)

    def _with(
        self, pairs: Floats | float, batch: Floats, new_tokens: Floats, cached_tokens: Floats
    ) -> Floats:
        logits = new_tokens if self.all_logits else np.minimum(new_tokens, 1.0)
        operations = (
            self.decoder.flops_per_token * new_tokens
            + self.decoder.flops_per_token_pair * (new_tokens**2 + pairs)
            + self.decoder.flops_per_logit * logits
        )
        return np.stack(
            np.broadcast_arrays(batch * operations, 1.0, batch * cached_tokens), axis=-1
        )


class Additive(Work):
    """Four features: the three features of Eq. 18 (paper 2) and the constant 1."""

    ranged = ("new_tokens", "interactions", "cached_tokens")

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features; see `Work.features`."""
        parts = (batch * part for part in features(new_tokens, cached_tokens))
        return np.stack(np.broadcast_arrays(*parts, 1.0), axis=-1)


@dataclass(frozen=True, eq=False)
class FittedPasses(PassTime):
    """A fitted pass time. T is the maximum, over the pieces, of coefficients x features.

    Parameters
    ----------
    coefficients
        Fitted coefficients and their lower and upper limits, each of shape (pieces, features).
    work
        Features of a pass.
    misfit
        Largest relative differences between measured and predicted times, below and above the
        prediction, including passes that were not used for the fit.
    ranges
        Minimum and maximum measured value of each feature in `work.ranged` and of the batch size;
        unknown ranges are missing.
    contexts
        Cached tokens per request in the measured passes; empty if unknown.
    notes
        Notes that are shown to the user.
    """

    coefficients: Mapping[Which, Floats]
    work: Work
    misfit: tuple[float, float] = (0.0, 0.0)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    contexts: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_limits(self) -> bool:
        """Whether the coefficients have limits, or the misfit is known."""
        return self.coefficients["lower"] is not self.coefficients["upper"] or self.misfit != (
            0.0,
            0.0,
        )

    @property
    def measured(self) -> str:
        """Measured range of every feature, used in messages."""
        ends = dict(self.ranges)
        if self.contexts:
            ends["context"] = min(self.contexts), max(self.contexts)
        return ", ".join(interval(name, *of) for name, of in ends.items())

    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the durations of passes, in seconds. The limits account for the limits of the
        coefficients and for the misfit.
        """
        find = self.work.upper_features if which == "upper" else self.work.features
        found = find(batch, new_tokens, cached_tokens)

        def times(of: Which) -> Floats:
            return np.asarray((found @ self.coefficients[of].T).max(axis=-1), np.float64)

        if which == "lower":
            return np.minimum(times("lower"), (1.0 + self.misfit[0]) * times("fitted"))
        if which == "upper":
            return np.maximum(times("upper"), (1.0 + self.misfit[1]) * times("fitted"))
        return times("fitted")

    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return a mask of the passes whose batch size, context and features are within the
        measured ranges, up to rounding.
        """
        found = self.work.features(batch, new_tokens, cached_tokens)
        sizes = dict(zip(self.work.ranged, np.moveaxis(found, -1, 0), strict=False)) | {
            BATCH: np.asarray(batch)
        }
        inside = np.ones(found.shape[:-1], np.bool_)
        for name, (least, most) in self.ranges.items():
            inside &= (sizes[name] >= least * (1.0 - 1e-9)) & (sizes[name] <= most * (1.0 + 1e-9))
        if self.contexts:
            inside &= (min(self.contexts) <= cached_tokens) & (cached_tokens <= max(self.contexts))
        return inside
