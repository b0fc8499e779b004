"""The kernels of fair goodput against plain Python."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from specopt.kinds.fair_goodput.strategies import fairness, rates, weights
from specopt.models.fields import Floats


def rate(a: float, s: float) -> float:
    """f(s): the interpolation of 1 + a + ... + a^n at the integers."""
    n = math.floor(s)
    return math.fsum(a**k for k in range(n + 1)) + (s - n) * a ** (n + 1)


def value(a: float, w: float, g: float, price: float, s: float) -> float:
    """w U(f(s)) - price s."""
    x = rate(a, s)
    return w * (math.log(x) if g == 1 else x ** (1 - g) / (1 - g)) - price * s


def table_of(kernels: Any, a: Floats, w: Floats, least: Floats, most: Floats) -> NDArray[Any]:
    """The clients as the kernels take them, before any search."""
    table = np.zeros(len(a), kernels.Client)
    table["a"], table["w"], table["lo"], table["hi"] = a, w, least, most
    with np.errstate(divide="ignore"):
        table["L"] = np.log1p(a - 1)
    return table


clients = st.lists(
    st.tuples(rates, weights, st.integers(0, 6), st.sampled_from((0.0, 0.25, 1.0))),
    min_size=1,
    max_size=6,
)


@given(clients, fairness, st.lists(st.floats(1e-6, 2.0), min_size=1, max_size=5))
def test_demand_is_the_best_there_is(
    rows: list[tuple[float, float, int, float]], g: float, prices: list[float]
) -> None:
    """Tests that no other draft is worth more at a price, whatever prices were asked before, and
    the sum is right.
    """
    kernels = importlib.import_module("specopt.solvers.fair_goodput.kernels.dual")
    a, w, most, part = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    least = part * most
    table = table_of(kernels, a, w, least, most)
    for price in prices:
        excess = kernels.demands(g, 7.0, price, table)
        found = table["s"]
        assert excess == pytest.approx(found.sum() - 7.0, abs=1e-12)
        for i, s in enumerate(found):
            assert least[i] <= s <= most[i]
            best = value(a[i], w[i], g, price, s)
            for other in np.linspace(least[i], most[i], 41):
                assert value(a[i], w[i], g, price, other) <= best + 1e-12 * max(1.0, abs(best))


@given(clients, fairness, st.floats(1e-3, 2.0))
def test_certificates_are_their_definitions(
    rows: list[tuple[float, float, int, float]], g: float, price: float
) -> None:
    """Tests that both gaps of any allocation at any price are what their definitions say, client by
    client.
    """
    kernels = importlib.import_module("specopt.solvers.fair_goodput.kernels.dual")
    a, w, most, part = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    s, least = part * most, np.zeros(len(a))
    budget = float(s.sum()) + 1.0
    table = table_of(kernels, a, w, least, most)
    kernels.demands(g, budget, price, table)
    best = table["s"].copy()
    table["s"] = s
    gaps = kernels.certify(g, budget, price, table)
    dual, linear = price, price  # of the token that is left over
    for i in range(len(a)):
        dual += value(a[i], w[i], g, price, best[i]) - value(a[i], w[i], g, price, s[i])
        slope = w[i] * rate(a[i], s[i]) ** -g
        worth = [slope * rate(a[i], t) - price * t for t in range(int(most[i]) + 1)]
        linear += max(worth) - (slope * rate(a[i], s[i]) - price * s[i])
    assert gaps[0] == pytest.approx(dual, rel=1e-9, abs=1e-9)
    assert gaps[1] == pytest.approx(linear, rel=1e-9, abs=1e-9)
