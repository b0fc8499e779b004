"""The fairest mixture of given rounds: its optimality conditions, for gentle and for steep
utilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from specopt.solvers.fair_goodput import master
from specopt.solvers.fair_goodput.master import _Path, fairest_mixture

Array = np.ndarray[Any, np.dtype[np.float64]]

FAIRNESS = [0.0, 0.01, 0.3, 1.0, 1.5, 2.0, 5.75, 12.0, 20.0, 40.0, 100.0]


def tables(seed: int, count: int) -> Iterator[tuple[Array, Array]]:
    """Rates and weights at random: of one size, of many, over six powers of ten, with ties, with
    equal rounds.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        clients, rounds = rng.integers(1, 12), rng.integers(1, 24)
        rates = np.exp(rng.normal(0.0, rng.choice([0.01, 0.1, 1.0, 2.0]), (clients, rounds)))
        if number % 4 == 0:
            rates = 10.0 ** rng.uniform(-3.0, 3.0, (clients, rounds))
        elif number % 4 == 1:
            rates = 10.0 ** rng.uniform(-3.0, 3.0, (clients, 1)) * rng.integers(
                1, 4, (clients, rounds)
            )
        elif number % 4 == 2:
            rates = np.repeat(rates, 2, axis=1)
        yield rates, np.exp(rng.normal(0.0, rng.choice([0.1, 1.0, 6.0]), clients))


def beyond(rates: Array, least: Array) -> Array:
    """The rates beyond the minimum rates that are above 0, each row in a unit of its size."""
    due = least > 0
    return np.asarray((rates - least[:, None])[due] / rates[due].max(axis=1)[:, None])


def prices_at(x: Array, weights: Array, fairness: float) -> Array:
    """The slope of the utility, in units in which the rates are worth 1."""
    logarithms = np.log(weights) - fairness * np.log(x)
    prices = np.exp(logarithms - logarithms.max())
    return np.asarray(prices / (prices @ x))


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_no_round_is_worth_more_at_its_prices(fairness: float) -> None:
    """Tests that at the mixture's own prices no round is worth more than the mixture, at every
    steepness.
    """
    for rates, weights in tables(int(10 * fairness), 60):
        found = fairest_mixture(rates, weights, fairness, beyond(rates, np.zeros(len(rates))))
        assert (found.shares >= 0.0).all()
        assert found.shares.sum() == pytest.approx(1.0, rel=1e-14)
        worth = prices_at(rates @ found.shares, weights, fairness) @ rates
        assert worth.max() <= 1.0 + 1e-11
        assert found.lack == pytest.approx(worth.max() - 1.0, abs=1e-12)


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_multipliers_of_least_rates_close_the_gap(fairness: float) -> None:
    """Tests that with least rates the multipliers price every round at most as high as the
    mixture.
    """
    rng = np.random.default_rng(int(10 * fairness))
    for rates, weights in tables(int(10 * fairness), 40):
        part = rng.choice([0.5, 0.9, 1.0 - 1e-6]) * (rng.random(len(rates)) < 0.5)
        least = part * (rates @ rng.dirichlet(np.ones(rates.shape[1])))
        spare = beyond(rates, least)
        found = fairest_mixture(rates, weights, fairness, spare)
        assert (found.extra >= 0.0).all()
        assert (spare @ found.shares >= -1e-11).all()
        prices = prices_at(rates @ found.shares, weights, fairness)
        assert (prices @ rates + found.extra @ spare).max() <= 1.0 + 1e-11
        assert found.extra @ spare @ found.shares <= 2e-11


@pytest.mark.parametrize("fairness", FAIRNESS[1:])
def test_the_careful_way_leads_there_too(fairness: float) -> None:
    """Tests that short steps straight ahead, which are tried where bold ones fail, reach the same
    conditions.
    """
    for rates, weights in tables(int(10 * fairness) + 1, 12):
        unit = rates.max(axis=1)
        logarithms = np.log(weights) + (1.0 - fairness) * np.log(unit)
        path = _Path(
            rates / unit[:, None], logarithms, fairness, beyond(rates, np.zeros(len(rates)))
        )
        assert path.follow(careful=True).lack <= 1e-11


def test_a_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a mixture found without success says how far it is from the conditions of
    optimality.
    """
    monkeypatch.setattr(_Path, "step", lambda self, *, careful: False)
    rates = np.array([[1.0, 3.0], [2.0, 1.0]])
    found = fairest_mixture(rates, np.ones(2), 1.0, beyond(rates, np.zeros(len(rates))))
    assert found.shares == pytest.approx([0.5, 0.5])
    assert found.lack == pytest.approx(0.5 * (3.0 / 2.0 + 1.0 / 1.5) - 1.0)


@pytest.mark.parametrize("fairness", FAIRNESS[1:])
def test_eliminating_the_clients_leads_there_too(
    fairness: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the smaller equations, which many clients take, lead to the same common rate."""
    rng = np.random.default_rng(int(10 * fairness))
    rates = np.exp(rng.normal(0.0, 0.3, (40, 9)))
    weights = np.exp(rng.normal(0.0, 1.0, 40))
    least = (rng.random(40) < 0.2) * 0.9 * (rates @ np.full(9, 1.0 / 9.0))
    found = []
    for limit in (0, 1000):
        monkeypatch.setattr(master, "WHOLE", limit)
        found.append(fairest_mixture(rates, weights, fairness, beyond(rates, least)))
    assert all(mixture.lack <= 1e-11 for mixture in found)
    assert found[0].shares == pytest.approx(found[1].shares, abs=1e-6)
