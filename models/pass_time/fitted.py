"""Pass times that were fitted to measurements.

The duration of a pass is the maximum of linear functions of its features, such as its number of
tokens. The coefficients may have lower and upper limits, and the misfit is stored with the fit.
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
"""Key under which a fit may store the measured range of the batch size, in addition to the measured
ranges of its features.
"""


class Work(ABC):
    """Base class for objects that compute the features of a pass. The predicted duration is a
    linear function of the features, or a maximum of such functions.
    """

    ranged: tuple[str, ...]
    """Names of the features for which a fit stores the measured range."""

    @abstractmethod
    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return an array that contains the features of each pass along its last axis. The features
        listed in `ranged` come first.
        """

    def upper_features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return upper bounds on the features in the format of `features`. They are used for upper
        estimates, because a fit may have counted more work per pass than `features` does.
        """
        return self.features(batch, new_tokens, cached_tokens)


class Tokens(Work):
    """Features that count tokens: the number of new tokens in the batch, the constant 1, and the
    number of cached tokens in the batch.
    """

    ranged = ("tokens",)

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features along the last axis, as described in `Work.features`."""
        return np.stack(
            np.broadcast_arrays(batch * new_tokens, 1.0, batch * cached_tokens), axis=-1
        )


@dataclass(frozen=True)
class Operations(Work):
    """Features that count operations: the number of operations in the batch, the constant 1, and
    the number of cached tokens in the batch.

    Each pass reads the cache of each request once, regardless of the number of new tokens. If the
    fit has no coefficient for cached tokens, reading the cache is assumed to cost as much as the
    attention of one new token.

    Parameters
    ----------
    decoder
        Decoder that determines the number of operations per token.
    all_logits
        Whether logits are computed at every new position, as in verification, or only at the last
        position.
    attends
        Whether attention to cached tokens is counted as operations. If false, cached tokens have a
        separate coefficient.
    """

    decoder: Decoder
    all_logits: bool
    attends: bool

    ranged = ("flops",)

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features along the last axis, as described in `Work.features`."""
        return self._with(cached_tokens if self.attends else 0.0, batch, new_tokens, cached_tokens)

    def upper_features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features, counting the operations for attention from every new token to every
        cached token. Fits count operations in this way.
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
    """Features of paper 2's estimator: the three features in Eq. 18, and the constant 1."""

    ranged = ("new_tokens", "interactions", "cached_tokens")

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features along the last axis, as described in `Work.features`."""
        parts = (batch * part for part in features(new_tokens, cached_tokens))
        return np.stack(np.broadcast_arrays(*parts, 1.0), axis=-1)


@dataclass(frozen=True, eq=False)
class FittedPasses(PassTime):
    """A fitted pass time: the maximum, over all pieces, of the dot product of coefficients and
    features.

    Parameters
    ----------
    coefficients
        Fitted coefficients ("fitted") and their limits ("lower" and "upper"), each of shape
        (pieces, features).
    work
        Object that computes the features of a pass.
    misfit
        Largest relative differences of measured times from predictions, first below (negative) and
        then above the prediction. Passes that were not used for the fit are included.
    ranges
        Minimum and maximum measured value of each feature in `work.ranged` and of the batch size.
        Ranges that are not known are missing.
    contexts
        Numbers of cached tokens per request in the measured passes. The tuple is empty if they are
        not known.
    notes
        Remarks about the fit that are shown to the user.
    """

    coefficients: Mapping[Which, Floats]
    work: Work
    misfit: tuple[float, float] = (0.0, 0.0)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    contexts: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_limits(self) -> bool:
        """Whether the lower and upper estimates of a duration may differ from the fitted value."""
        return self.coefficients["lower"] is not self.coefficients["upper"] or self.misfit != (
            0.0,
            0.0,
        )

    @property
    def measured(self) -> str:
        """Description of the measured ranges, used in error messages."""
        ends = dict(self.ranges)
        if self.contexts:
            ends["context"] = min(self.contexts), max(self.contexts)
        return ", ".join(interval(name, *of) for name, of in ends.items())

    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the duration of each pass, in seconds. The lower and upper estimates account for
        the limits of the coefficients and for the misfit.
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
        """Return a Boolean mask that is true for passes whose batch size, context and features are
        within the measured ranges, up to rounding.
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
