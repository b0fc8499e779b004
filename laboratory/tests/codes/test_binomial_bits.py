"""Bits of binomial coefficients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import quantisation as naive

from specopt.models.codes.lattice import binomial_bits
from testbed.codes import binomial_bits as module
from testbed.codes.binomial_bits import row_bits


def test_every_small_coefficient() -> None:
    """Tests that rows and single coefficients agree with an enumeration of powers of two, including
    exact ones.
    """
    for n in range(41):
        expected = [naive.bits(math.comb(n, k)) for k in range(n + 1)]
        assert row_bits(n, n).tolist() == expected
        assert [binomial_bits(n, k) for k in range(n + 1)] == expected
        for k in range(n + 1):
            assert row_bits(n, k).tolist() == expected[: k + 1]


@given(st.integers(0, 60_000), st.integers(0, 1500))
def test_large_coefficients(gap: int, k: int) -> None:
    """Tests that the bits are those of the coefficient as a big integer, both alone and in a
    row.
    """
    coefficient = math.comb(gap + k, k)
    bits = (coefficient - 1).bit_length()
    assert 2 ** (bits - 1) < coefficient <= 2**bits or coefficient == 1
    assert binomial_bits(gap + k, k) == binomial_bits(gap + k, gap) == bits
    assert row_bits(gap + k, k)[-1] == bits


def test_single_coefficients_beyond_the_direct_way() -> None:
    """Tests that the logarithms for a coefficient with thousands of factors give the result of
    integers.
    """
    for n, k in ((9000, 4500), (9001, 4400), (60_000, 2500), (52_271, 50_271)):
        assert binomial_bits(n, k) == (math.comb(n, k) - 1).bit_length()


@pytest.mark.parametrize("power", range(2, 40))
def test_powers_of_two(power: int) -> None:
    """Tests that C(2^m, 1) has m bits and C(2^m + 1, 1) has one more, both alone and in a row."""
    assert row_bits(2**power, 1)[1] == binomial_bits(2**power, 1) == power
    assert row_bits(2**power + 1, 1)[1] == binomial_bits(2**power + 1, 1) == power + 1


def test_neighbours_of_powers_of_two() -> None:
    """Tests that C(n, 2) and C(n, 3) close to powers of two are distinguished for any size."""
    for power in range(4, 100):
        for k in (2, 3):
            n = round((math.factorial(k) * 2.0**power) ** (1 / k))
            for near in range(n - 2, n + 4):
                assert row_bits(near, k)[k] == (math.comb(near, k) - 1).bit_length()


def test_doubt_is_settled_by_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the answer is right for any error bound, including a huge one that uses integers
    everywhere.
    """
    monkeypatch.setattr(module, "_ULPS", 1e14)
    assert row_bits(700, 300).tolist() == [(math.comb(700, k) - 1).bit_length() for k in range(301)]


def test_error_bound_holds() -> None:
    """Tests that the sums of logarithms differ from those with 50 digits by less than their error
    bound.
    """
    from decimal import Decimal, getcontext

    getcontext().prec = 50
    gap, largest = 50_271, 3000
    terms = np.log1p(gap / np.arange(1, largest + 1)) / math.log(2.0)
    truth = Decimal(0)
    for k in range(1, largest + 1):
        truth += (Decimal(gap + k) / k).ln() / Decimal(2).ln()
    bound = np.finfo(np.float64).eps * (module._BLOCK + 12 + module._ULPS) * float(truth)
    assert abs(float(Decimal(float(np.cumsum(terms)[-1])) - truth)) < bound
