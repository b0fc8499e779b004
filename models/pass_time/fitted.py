"""Fitted forms: maxima of lines in the work of a pass, with limits of their coefficients and of
their misfit.
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
"""A fit may state the measured range of the batch size under this name, in addition to its
features.
"""


class Work(ABC):
    """The features that the coefficients of a form multiply."""

    ranged: tuple[str, ...]
    """Names of the features whose measured range a fit states."""

    @abstractmethod
    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features of passes in the last axis, those of `ranged` first."""

    def upper_features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return upper limits of the features, as large as the fit may have counted them."""
        return self.features(batch, new_tokens, cached_tokens)


class Tokens(Work):
    """New tokens of the batch, 1, and cached tokens of the batch."""

    ranged = ("tokens",)

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features; see `Work.features`."""
        return np.stack(
            np.broadcast_arrays(batch * new_tokens, 1.0, batch * cached_tokens), axis=-1
        )


@dataclass(frozen=True)
class Operations(Work):
    """Operations of the batch, 1, and cached tokens of the batch.

    The cache is read once per request and pass, however many tokens are new. Without a coefficient
    for reading, it costs as much as the attention of one new token.

    Parameters
    ----------
    decoder
        Decoder that converts tokens into operations.
    all_logits
        Whether every new position needs its logits, as in verification, or only the last one.
    attends
        Whether attention to the cached tokens counts as operations; otherwise they have a separate
        coefficient.
    """

    decoder: Decoder
    all_logits: bool
    attends: bool

    ranged = ("flops",)

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features; see `Work.features`."""
        return self._with(cached_tokens if self.attends else 0.0, batch, new_tokens, cached_tokens)

    def upper_features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features with the attention of every new token, because fits count operations
        this way.
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
    """The features of Eq. 18 (paper 2) and the constant 1."""

    ranged = ("new_tokens", "interactions", "cached_tokens")

    def features(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Floats:
        """Return the features; see `Work.features`."""
        parts = (batch * part for part in features(new_tokens, cached_tokens))
        return np.stack(np.broadcast_arrays(*parts, 1.0), axis=-1)


@dataclass(frozen=True, eq=False)
class FittedPasses(PassTime):
    """T = max over pieces of coefficients x features.

    Parameters
    ----------
    coefficients
        Coefficients by limit, each of shape (pieces, features).
    work
        Features of a pass.
    misfit
        Largest relative differences of measured from predicted times, below and above, including
        passes that were held out from the fit.
    ranges
        Minimum and maximum measured value of each feature in `work.ranged` and of the batch;
        unknown ranges are missing.
    contexts
        Cached tokens per request of the passes that were fitted; empty if unknown.
    notes
        Notes for the reader.
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
        """Return the range of every feature."""
        ends = dict(self.ranges)
        if self.contexts:
            ends["context"] = min(self.contexts), max(self.contexts)
        return ", ".join(interval(name, *of) for name, of in ends.items())

    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the seconds of the form. A limit includes those of the coefficients and of the
        misfit.
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
        """Return whether batch, context and features are within their ranges, up to rounding."""
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
