"""Models of how acceptance rates change from round to round: fixed rates, drifting rates, and
regimes that switch at random.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from specopt.models.arguments import array, integer, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, Floats, Immutable, describe
from specopt.models.markov_chain import recurrent_classes, stationary_distribution

MAX_MODES = 5000


@dataclass(frozen=True, eq=False)
class AcceptanceProcess(Immutable):
    """A process that describes the acceptance rates of N clients in every round.

    Use the constructors `fixed`, `drifting` and `switching` to build a process.

    Parameters
    ----------
    rates
        Acceptance rates in [0, 1), shape (P, R, N): entry (p, r, i) is the rate of client i in
        regime r during round p. After P rounds, the rates repeat from the first round.
    transition
        Probabilities of a client's next regime (column) given its current regime (row), shape
        (R, R). Every client switches independently.
    """

    rates: Floats
    transition: Floats

    def __post_init__(self) -> None:
        rates = array("rates", self.rates, 3)
        transition = array("transition", self.transition, 2)
        if not ((rates >= 0.0) & (rates < 1.0)).all():
            raise InvalidInput(
                "rates: expected acceptance rates in [0, 1), got"
                f" {describe(float(rates.flat[0]))}, ..."
            )
        regimes = rates.shape[1]
        if transition.shape != (regimes, regimes):
            raise InvalidInput(
                f"transition: expected {regimes} x {regimes} entries, got shape {transition.shape}"
            )
        if (transition < 0.0).any() or np.abs(transition.sum(axis=1) - 1.0).max() > 1e-9:
            raise InvalidInput("transition: expected rows of probabilities >= 0 that sum to 1")
        object.__setattr__(self, "rates", rates)
        object.__setattr__(self, "transition", transition)

    @classmethod
    def fixed(cls, rates: ArrayLike) -> Self:
        """Return a process in which the clients' rates never change."""
        return cls(array("rates", rates, 1)[None, None], np.ones((1, 1)))

    @classmethod
    def drifting(cls, low: ArrayLike, high: ArrayLike, period_rounds: int) -> Self:
        """Return a process in which the clients' rates follow sine waves with different phases.

        Parameters
        ----------
        low
            Minimum rate of every client.
        high
            Maximum rate of every client.
        period_rounds
            Number of rounds per period of the wave, at least 2.
        """
        least = array("low", low, 1)
        most = array("high", high, 1)
        if len(least) != len(most):
            raise InvalidInput(f"high: expected {len(least)} entries, as in low, got {len(most)}")
        period_rounds = integer("period_rounds", period_rounds, 2, MAX_TOKENS)
        turns = np.arange(period_rounds)[:, None] / period_rounds + np.arange(len(least)) / len(
            least
        )
        path = least + (most - least) * (0.5 - 0.5 * np.cos(2.0 * np.pi * turns))
        return cls(path[:, None], np.ones((1, 1)))

    @classmethod
    def switching(cls, regimes: Sequence[ArrayLike], mean_rounds: float) -> Self:
        """Return a process in which each client switches between regimes independently.

        The number of rounds between two switches is geometrically distributed.

        Parameters
        ----------
        regimes
            Acceptance rates of all clients in each regime. At least two regimes are required. A
            client that switches enters each of the other regimes with the same probability.
        mean_rounds
            Mean number of rounds between two switches of a client, at least 1.
        """
        rates = array("regimes", regimes, 2)
        count = len(rates)
        if count < 2:
            raise InvalidInput(f"regimes: expected at least 2 regimes, got {count}")
        mean_rounds = number("mean_rounds", mean_rounds, 1)
        transition = np.full((count, count), 1.0 / mean_rounds / (count - 1))
        np.fill_diagonal(transition, 1.0 - 1.0 / mean_rounds)
        return cls(rates[None], transition)

    @property
    def clients(self) -> int:
        """Number of clients N."""
        return int(self.rates.shape[2])

    @property
    def is_fixed(self) -> bool:
        """Whether the rates never change."""
        return self.rates.shape[:2] == (1, 1)

    @property
    def regime_shares(self) -> Floats:
        """Long-run share of rounds that a client spends in each regime.

        If the Markov chain has several recurrent classes, the client is assumed to be equally
        likely to end in each class.
        """
        classes = recurrent_classes(self.transition)
        shares: Floats = np.mean(
            [stationary_distribution(self.transition, one) for one in classes], axis=0
        )
        return shares

    def modes(self, path_points: int = 500) -> tuple[Floats, Floats]:
        """Return the joint modes of all clients and the long-run frequency of each mode.

        A joint mode is a combination of one of the P rounds in `rates` and a regime for each
        client.

        Parameters
        ----------
        path_points
            Maximum number of rounds used to represent drifting rates.

        Returns
        -------
        tuple
            Rates of all clients in every mode, shape (M, N), and the long-run share of rounds that
            is spent in each mode, shape (M,).

        Raises
        ------
        InvalidInput
            If there are more than 5000 modes.
        """
        P, R, N = self.rates.shape
        chosen = np.unique(np.linspace(0, P - 1, min(P, path_points)).astype(np.int64))
        if float(R) ** N * len(chosen) > MAX_MODES:
            raise InvalidInput(
                f"process: expected at most {MAX_MODES} joint modes, got {len(chosen)} x {R}^{N}"
            )
        joint = np.array(list(itertools.product(range(R), repeat=N)))
        rates = self.rates[chosen][:, joint, np.arange(N)].reshape(-1, N)
        shares = np.tile(self.regime_shares[joint].prod(axis=1), len(chosen)) / len(chosen)
        return np.ascontiguousarray(rates), shares
