"""An additive model of batched verification time (paper 2, Eq. 18-19). The duration is a constant
plus a weight for each request in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Checked, Floats, Ints, NonNegative


def features(
    new_tokens: Ints | Floats, cached_tokens: Ints | Floats
) -> tuple[Floats, Floats, Floats]:
    """Return three features of each request: L_new, (L_cached + L_new) L_new, and L_cached.

    A request's weight in the verification time is a linear function of these features (Eq. 18).
    """
    new = np.asarray(new_tokens, np.float64)
    cached = np.asarray(cached_tokens, np.float64)
    return new, (cached + new) * new, cached


@dataclass(frozen=True, kw_only=True)
class VerificationTime(Checked):
    """An additive estimator of a batch's verification time.

    The time is T(B) = c + sum of w_i, where w_i = a L_new + b_compute (L_cached + L_new) L_new +
    b_read L_cached.

    Parameters
    ----------
    seconds_per_new_token
        Time a of the linear layers per new token, in seconds.
    seconds_per_interaction
        Time b_compute per pair of a query token and a key token, in seconds (Eq. 18).
    seconds_per_cached_token
        Time b_read to read one cached token, in seconds.
    overhead_seconds
        Constant time c per batch, in seconds.
    """

    seconds_per_new_token: NonNegative
    seconds_per_interaction: NonNegative
    seconds_per_cached_token: NonNegative
    overhead_seconds: NonNegative

    def weights(self, new_tokens: Ints | Floats, cached_tokens: Ints | Floats) -> Floats:
        """Return the time w_i that each request adds to its batch, in seconds."""
        linear, interactions, read = features(new_tokens, cached_tokens)
        found: Floats = (
            self.seconds_per_new_token * linear
            + self.seconds_per_interaction * interactions
            + self.seconds_per_cached_token * read
        )
        return found

    def scaled(self, slope: float, overhead: float) -> VerificationTime:
        """Return a new estimator whose weights are multiplied by `slope` and whose constant is
        multiplied by `overhead`.
        """
        return VerificationTime(
            seconds_per_new_token=slope * self.seconds_per_new_token,
            seconds_per_interaction=slope * self.seconds_per_interaction,
            seconds_per_cached_token=slope * self.seconds_per_cached_token,
            overhead_seconds=overhead * self.overhead_seconds,
        )

    def seconds(self, new_tokens: Ints | Floats, cached_tokens: Ints | Floats) -> float:
        """Return the verification time T(B) of a batch of requests, in seconds (Eq. 19)."""
        return self.overhead_seconds + float(self.weights(new_tokens, cached_tokens).sum())


COEFFICIENTS = tuple(VerificationTime.__dataclass_fields__)
"""Names of the coefficients a, b_compute, b_read and c. Arrays of coefficients have this order."""
