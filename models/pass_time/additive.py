"""Time of one batched verification: a constant plus additive weights per request (paper 2, Eq.
18-19).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Checked, Floats, Ints, NonNegative


def features(
    new_tokens: Ints | Floats, cached_tokens: Ints | Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the features of each request in which its time is linear: L_new, (L_cached + L_new)
    L_new and L_cached (Eq. 18).
    """
    new = np.asarray(new_tokens, np.float64)
    cached = np.asarray(cached_tokens, np.float64)
    return new, (cached + new) * new, cached


@dataclass(frozen=True, kw_only=True)
class VerificationTime(Checked):
    """T(B) = c + sum of w_i, w_i = a L_new + b_compute (L_cached + L_new) L_new + b_read L_cached.

    Parameters
    ----------
    seconds_per_new_token
        Cost a of the linear layers for a token that is computed.
    seconds_per_interaction
        Cost b_compute of one product of a query with a key (Eq. 18).
    seconds_per_cached_token
        Cost b_read of reading one cached token.
    overhead_seconds
        Constant cost c of any batch.
    """

    seconds_per_new_token: NonNegative
    seconds_per_interaction: NonNegative
    seconds_per_cached_token: NonNegative
    overhead_seconds: NonNegative

    def weights(self, new_tokens: Ints | Floats, cached_tokens: Ints | Floats) -> Floats:
        """Return the seconds w_i that each request adds to its batch."""
        linear, interactions, read = features(new_tokens, cached_tokens)
        found: Floats = (
            self.seconds_per_new_token * linear
            + self.seconds_per_interaction * interactions
            + self.seconds_per_cached_token * read
        )
        return found

    def scaled(self, slope: float, overhead: float) -> VerificationTime:
        """Return the estimator with its weights and its constant scaled by two factors."""
        return VerificationTime(
            seconds_per_new_token=slope * self.seconds_per_new_token,
            seconds_per_interaction=slope * self.seconds_per_interaction,
            seconds_per_cached_token=slope * self.seconds_per_cached_token,
            overhead_seconds=overhead * self.overhead_seconds,
        )

    def seconds(self, new_tokens: Ints | Floats, cached_tokens: Ints | Floats) -> float:
        """Return T(B) of a batch of requests (Eq. 19)."""
        return self.overhead_seconds + float(self.weights(new_tokens, cached_tokens).sum())


COEFFICIENTS = tuple(VerificationTime.__dataclass_fields__)
"""Every array of coefficients has this order: a, b_compute, b_read, c."""
