"""Regression with a law and a sum of random effects: a Gaussian process about a function of few
parameters.

Scales of effects are the most probable ones under log-normal priors about what each term says is
usual, parameters of the law those under normal priors. The law counts as linear about them, so that
predictions know how unsure they are. All is linear algebra of n observations: O(n^3) for the fit,
O(n^2) for a prediction.
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

_LEAST, _MOST = np.log(1e-4), np.log(3.0)
_JITTER = 1e-9  # keeps covariances regular
_STEP = 1e-4  # of a parameter, for derivatives of the law


@dataclass(frozen=True)
class Term:
    """One effect.

    Parameters
    ----------
    usual
        Its scale: what is usual before there is data.
    covariance
        Of two observations at scale 1, from their records, elementwise.
    spread
        Standard deviation of the logarithm of the scale before there is data; 0: it stays as it is.
    """

    usual: float
    covariance: Callable[[Records, Records], Floats]
    spread: float = 1.5


@dataclass(frozen=True)
class Law:
    """What is expected before there are effects.

    Parameters
    ----------
    value
        Of records and parameters.
    usual, spread
        Mean and standard deviation of each parameter before there is data.
    """

    value: Callable[[Records, Floats], Floats]
    usual: Floats
    spread: Floats

    def slopes(self, features: Records, parameters: Floats) -> Floats:
        """Return the derivative of every record's value by every parameter."""
        steps = _STEP * np.eye(len(parameters))
        both = [
            (self.value(features, parameters + d), self.value(features, parameters - d))
            for d in steps
        ]
        return (
            np.array([(up - down) / (2.0 * _STEP) for up, down in both])
            .reshape(len(steps), len(features))
            .T
        )


NO_LAW = Law(lambda features, parameters: np.zeros(len(features)), np.empty(0), np.empty(0))


class Regression:
    """A law, a sum of effects and independent noise, fitted.

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
    law
        What the effects are added to.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        features: Records,
        values: Floats,
        repeats: Floats,
        noise: float,
        sure: float = 1.0,
        law: Law = NO_LAW,
    ) -> None:
        self.terms, self.features, self.law = tuple(terms), features, law
        self.level = float(values.mean())
        values = values - self.level
        learned = [term for term in terms if term.spread]
        grams = [term.covariance(features[:, None], features[None]) for term in learned] + [
            np.diag(1.0 / repeats)
        ]
        fixed = _JITTER * np.eye(len(values))
        for term in terms:
            if not term.spread:
                fixed += term.usual**2 * term.covariance(features[:, None], features[None])
        prior = np.concatenate((law.usual, np.log([*(term.usual for term in learned), noise])))
        spread = np.concatenate((law.spread, [term.spread for term in learned], [sure]))
        split = len(law.usual)

        def loss(unknown: Floats) -> tuple[float, Floats]:
            parameters, variances = unknown[:split], np.exp(2.0 * unknown[split:])
            covariance = fixed + sum(v * gram for v, gram in zip(variances, grams, strict=True))
            factor = cho_factor(covariance, lower=True)
            inverse = cho_solve(factor, np.eye(len(values)))
            misses = values - law.value(features, parameters)
            weights = inverse @ misses
            surprise = (unknown - prior) / spread
            value = (
                0.5 * misses @ weights
                + np.log(np.diag(factor[0])).sum()
                + 0.5 * (surprise**2).sum()
            )
            slope = [
                v * ((inverse * g).sum() - weights @ g @ weights)
                for v, g in zip(variances, grams, strict=True)
            ]
            return (
                float(value),
                np.append(-law.slopes(features, parameters).T @ weights, slope) + surprise / spread,
            )

        bounds = [(None, None)] * split + [(_LEAST, _MOST)] * (len(prior) - split)
        found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds).x
        self.parameters = found[:split]
        *scales, self.noise = np.exp(found[split:]).tolist()
        learnt = iter(scales)
        self.scales = [next(learnt) if term.spread else term.usual for term in self.terms]
        self.values = values - self._expected(features)
        self._inverse = np.linalg.inv(
            self._gram(features, features) + np.diag(self.noise**2 / repeats + _JITTER)
        )

    def predict(self, features: Records) -> tuple[Floats, Floats]:
        """Return mean and variance of a new run at each record."""
        cross = self._gram(features, self.features)
        mean = cross @ (self._inverse @ self.values) + self.level + self._expected(features)
        return mean, np.maximum(self.covariance(features, features), 0.0) + self.noise**2

    def covariance(self, a: Records, b: Records) -> Floats:
        """Return the covariance of new runs at pairs of records, a[i] with b[i], their noise
        apart.
        """
        slopes = self.law.slopes(a, self.parameters), self.law.slopes(b, self.parameters)
        own = (slopes[0] * self.law.spread**2 * slopes[1]).sum(axis=1)
        for term, scale in zip(self.terms, self.scales, strict=True):
            own += scale**2 * term.covariance(a, b)
        known = self.features
        return np.asarray(
            own - ((self._gram(a, known) @ self._inverse) * self._gram(b, known)).sum(axis=1)
        )

    def held_out(self, hidden: NDArray[np.int_]) -> tuple[Floats, Floats]:
        """Return mean and variance of some observations as all others predict them."""
        covariance = np.linalg.inv(self._inverse[np.ix_(hidden, hidden)])
        away = covariance @ (self._inverse @ self.values)[hidden]
        mean = self.values[hidden] - away + self.level + self._expected(self.features[hidden])
        return np.asarray(mean), np.diag(covariance)

    def _expected(self, features: Records) -> Floats:
        """Return what the law expects before there is data, as a line through its fitted
        parameters.
        """
        slopes = self.law.slopes(features, self.parameters)
        return np.asarray(
            self.law.value(features, self.parameters) + slopes @ (self.law.usual - self.parameters)
        )

    def _gram(self, a: Records, b: Records) -> Floats:
        slopes = self.law.slopes(a, self.parameters) * self.law.spread**2
        total = np.asarray(slopes @ self.law.slopes(b, self.parameters).T)
        for term, scale in zip(self.terms, self.scales, strict=True):
            total += scale**2 * term.covariance(a[:, None], b[None])
        return total
