"""Regression with a sum of random effects: a Gaussian process whose kernel is a sum of scaled terms.

The scales are the most probable ones under log-normal priors around what each term says is usual. All is linear
algebra of n observations: O(n^3) for the fit, O(n^2) for a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from specopt.models.fields import Floats

Records = NDArray[Any]
"""Structured arrays: one record of features per observation."""

_SPREAD = 1.5  # standard deviation of the logarithm of a scale before there is data
_LEAST, _MOST = np.log(1e-4), np.log(3.0)
_JITTER = 1e-9  # keeps covariances regular


@dataclass(frozen=True)
class Term:
    """One effect.

    Parameters
    ----------
    usual
        Its scale: what is usual before there is data.
    covariance
        Of two observations at scale 1, from their records, elementwise.
    learned
        Whether the scale is learned, or stays as it is.
    """

    usual: float
    covariance: Callable[[Records, Records], Floats]
    learned: bool = True


class Regression:
    """A sum of effects and independent noise, fitted.

    Parameters
    ----------
    terms
        The effects.
    features
        Records of the observations, as the terms take them.
    values
        The observations.
    repeats
        How many runs each is the mean of; the noise of a mean falls with the root of that.
    noise
        Standard deviation of one run: its usual value, or what repetitions say.
    sure
        How sure that is: standard deviation of its logarithm.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        features: Records,
        values: Floats,
        repeats: Floats,
        noise: float,
        sure: float = _SPREAD,
    ) -> None:
        self.terms, self.features = tuple(terms), features
        self.level = float(values.mean())
        self.values = values - self.level
        learned = [term for term in terms if term.learned]
        grams = [term.covariance(features[:, None], features[None]) for term in learned] + [np.diag(1.0 / repeats)]
        fixed = _JITTER * np.eye(len(values))
        for term in terms:
            if not term.learned:
                fixed += term.usual**2 * term.covariance(features[:, None], features[None])
        prior = np.log([*(term.usual for term in learned), noise])
        spread = np.array([_SPREAD] * len(learned) + [sure])

        def loss(scales: Floats) -> tuple[float, Floats]:
            variances = np.exp(2.0 * scales)
            covariance = fixed + sum(v * gram for v, gram in zip(variances, grams, strict=True))
            factor = cho_factor(covariance, lower=True)
            inverse = cho_solve(factor, np.eye(len(self.values)))
            weights = inverse @ self.values
            surprise = (scales - prior) / spread
            value = 0.5 * self.values @ weights + np.log(np.diag(factor[0])).sum() + 0.5 * (surprise**2).sum()
            slope = [v * ((inverse * g).sum() - weights @ g @ weights) for v, g in zip(variances, grams, strict=True)]
            return float(value), np.array(slope) + surprise / spread

        found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=[(_LEAST, _MOST)] * len(prior)).x
        *scales, self.noise = np.exp(found).tolist()
        learnt = iter(scales)
        self.scales = [next(learnt) if term.learned else term.usual for term in terms]
        self._covariance = self._gram(features, features) + np.diag(self.noise**2 / repeats + _JITTER)
        self._inverse = np.linalg.inv(self._covariance)

    def predict(self, features: Records, keep: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
        """Return mean and variance of a new run at each record, from all observations or those to keep."""
        inverse, values, known = self._inverse, self.values, self.features
        if keep is not None and not keep.all():
            inverse = np.linalg.inv(self._covariance[np.ix_(keep, keep)])
            values, known = values[keep], known[keep]
        cross = self._gram(features, known)
        own = np.zeros(len(features))
        for term, scale in zip(self.terms, self.scales, strict=True):
            own += scale**2 * term.covariance(features, features)
        explained = ((cross @ inverse) * cross).sum(axis=1)
        return cross @ (inverse @ values) + self.level, np.maximum(own - explained, 0.0) + self.noise**2

    def covariance(self, a: Records, b: Records) -> Floats:
        """Return the covariance of new runs at pairs of records, a[i] with b[i], their noise apart."""
        own = np.zeros(len(a))
        for term, scale in zip(self.terms, self.scales, strict=True):
            own += scale**2 * term.covariance(a, b)
        known = self.features
        return np.asarray(own - ((self._gram(a, known) @ self._inverse) * self._gram(b, known)).sum(axis=1))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Return mean and variance of every observation as all others predict it."""
        precision = np.diag(self._inverse)
        return self.values - self._inverse @ self.values / precision + self.level, 1.0 / precision

    def _gram(self, a: Records, b: Records) -> Floats:
        total = np.zeros((len(a), len(b)))
        for term, scale in zip(self.terms, self.scales, strict=True):
            total += scale**2 * term.covariance(a[:, None], b[None])
        return total
