"""Expected tokens per step and the number of steps (Eq. 7-8)."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import serving_latency as naive

from specopt.models.acceptance import decoding_steps, expected_tokens_per_step


@given(st.floats(0.0, 0.999), st.integers(0, 20))
@example(0.5, 2)  # 1.75
@example(1.0, 4)  # 5
def test_tokens_per_step_is_a_geometric_sum(alpha: float, length: int) -> None:
    """Tests that the closed form is the sum, and that it lies in 1..1 + l."""
    tokens = expected_tokens_per_step(alpha, length)
    assert tokens == pytest.approx(math.fsum(alpha**i for i in range(length + 1)), rel=1e-11)
    assert tokens * (1 + 1e-12) >= 1.0 and tokens <= 1 + length + 1e-9


@pytest.mark.parametrize("distance", [1e-6, 1e-9, 1e-12, 2.0**-53])
@pytest.mark.parametrize("length", [1, 10, 1000])
def test_tokens_per_step_near_certain_acceptance(distance: float, length: int) -> None:
    """Tests that Eq. 7 loses no digits where the acceptance is close to 1, held against exact
    fractions.
    """
    alpha = 1.0 - distance
    terms = (
        (Fraction(alpha) ** i for i in range(length + 1))
        if length <= 10
        else (alpha**i for i in range(length + 1))
    )
    exact = float(sum(terms)) if length <= 10 else math.fsum(terms)
    assert expected_tokens_per_step(alpha, length) == pytest.approx(
        exact, rel=4e-15 if length <= 10 else 1e-12
    )


@given(st.integers(1, 10_000), st.integers(1, 99), st.integers(1, 10))
@example(2500, 1, 5)  # 2475.00000000025: an integer by the rule, though not in truth
def test_rounding_adds_no_step(output: int, percent: int, length: int) -> None:
    """Tests that the steps are those of rational arithmetic: rounded up, unless an integer is
    within 1e-12.
    """
    alpha = Fraction(percent, 100)
    quotient = output * (1 - alpha) / (1 - alpha ** (length + 1))
    near = abs(quotient - round(quotient)) <= max(Fraction(1), quotient) / 10**12
    exact = round(quotient) if near else math.ceil(quotient)
    assert decoding_steps(output, expected_tokens_per_step(percent / 100, length)) == exact
    problem = {"acceptance_rate": percent / 100}
    assert naive.steps(output, naive.tokens_per_step(problem, length)) == exact


def test_a_plain_ceiling_would_add_a_step() -> None:
    """Tests that there are quotients that are integers but for the rounding of a division."""
    assert any(
        math.ceil(output / tokens) != decoding_steps(output, tokens)
        for output in range(1, 400)
        for percent in (20, 40, 50, 60, 80)
        for tokens in [expected_tokens_per_step(percent / 100, 1)]
    )
