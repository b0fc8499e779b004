"""The fairest mixture of given rounds: its optimality conditions, for gentle and for steep utilities."""

from __future__ import annotations

import numpy as np
import pytest

from specopt.solvers.fair_goodput.master import fairest_mixture


@pytest.mark.parametrize("fairness", [0.3, 1.0, 2.0, 5.75, 12.0, 20.0])
def test_no_round_is_worth_more_at_its_prices(fairness: float) -> None:
    """Tests that at the mixture's own prices no round is worth more than the mixture, at every steepness."""
    rng = np.random.default_rng(int(10 * fairness))
    for _ in range(60):
        clients, rounds = rng.integers(1, 10), rng.integers(1, 20)
        rates = np.exp(rng.normal(0.0, rng.choice([0.1, 1.0, 2.0]), (clients, rounds)))
        weights = np.exp(rng.normal(0.0, 1.0, clients))
        x = rates @ fairest_mixture(rates, weights, fairness, np.zeros(clients)).shares
        prices = weights * x**-fairness
        assert (prices @ rates).max() <= prices @ x * (1.0 + 1e-11)


def test_multipliers_of_least_rates_close_the_gap() -> None:
    """Tests that with least rates the multipliers price every round at most as high as the mixture."""
    rng = np.random.default_rng(0)
    for fairness in (0.5, 1.0, 3.0, 8.0):
        rates = np.exp(rng.normal(0.0, 1.0, (4, 9)))
        least = 0.9 * rates @ rng.dirichlet(np.ones(9))
        least[::2] = 0.0
        found = fairest_mixture(rates, np.ones(4), fairness, least)
        x = rates @ found.shares
        assert (x >= least * (1.0 - 1e-9)).all()
        prices = x**-fairness + found.extra
        assert (prices @ rates).max() <= prices @ x * (1.0 + 1e-9)
        assert found.extra @ (x - least) <= 1e-9 * (prices @ x)
