"""Chains that hardly ever leave a state, that nearly fall apart, or that go round: all methods, in
exact rationals.

`SPECOPT_CORNERS=2000` in the environment takes 2,000 random chains, by default 60.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from helpers.untyped import load, solve
from oracles import draft_control as naive

from specopt import DraftControlProblem

CASES = int(os.environ.get("SPECOPT_CORNERS", "60"))

EDGE = Path(__file__).parents[2] / "data" / "edges" / "draft-control-sticky.json"

METHODS = ("brute-force", "policy-iteration", "decoupled", "linear-program")
"""The last one is exact to the accuracy of HiGHS, the others to rounding on every chain."""


def rare(random: Random) -> float:
    """Return a small probability, from 1e-12 to 1e-3."""
    return float(10 ** random.uniform(-12, -3))


def transition(random: Random, size: int) -> list[list[float]]:
    """Return a chain of one recurrent class: sticky, nearly decomposable, nearly periodic, or with
    a way in.
    """
    shape = random.choice(("sticky", "blocks", "ring", "way in"))
    rows = [[0.0] * size for _ in range(size)]
    for i in range(size):
        if shape == "blocks":  # the states of either half mix at once, the halves hardly
            mates = [j for j in range(size) if (2 * j < size) == (2 * i < size)]
            for j in range(size):
                rows[i][j] = random.random() if j in mates else rare(random)
        elif shape == "ring":
            rows[i][(i + 1) % size] = 1.0 if random.random() < 0.5 else 1.0 - rare(random)
        else:
            for j in range(size):
                if random.random() < 0.4 or j == (i + 1) % size:
                    rows[i][j] = rare(random)
            if shape == "way in" and i < size - 1:  # the last state is left for ever
                rows[i] = [0.0 if j == size - 1 else p for j, p in enumerate(rows[i])]
                rows[i][(i + 1) % (size - 1)] += rare(random) if size > 2 else 0.0
        rest = sum(p for j, p in enumerate(rows[i]) if j != i)
        rows[i] = [p / rest if rest > 1.0 else p for p in rows[i]]
        rows[i][i] = max(0.0, 1.0 - sum(p for j, p in enumerate(rows[i]) if j != i))
    return rows


def corner(seed: int) -> DraftControlProblem:
    """Return a random problem of few policies on such a chain."""
    random = Random(seed)
    size = random.randint(2, 4)
    low = random.randint(0, 2)
    states: list[dict[str, Any]] = [
        {
            "uplink_bits_per_second": 10 ** random.uniform(1, 6),
            "acceptance_rates": [random.choice((0.0, 0.5, 1.0, random.random())) for _ in range(2)],
        }
        for _ in range(size)
    ]
    return DraftControlProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": "draft-control",
            "vocabulary_size": 2,
            "draft_lengths": [low, low + 2],
            "draft_seconds_per_token": random.choice((0.0, 0.01)),
            "verify_seconds": random.choice((1e-3, 0.1)),
            "resolutions": [1, 4],
            "states": states,
            "transition": transition(random, size),
        }
    )


def check(problem: DraftControlProblem) -> None:
    """Check objective and bound of exact methods against the optimum in rational numbers, and the
    judge.
    """
    data = problem.to_dict()
    best = naive.optimum_by_price(data, naive.chain(data))
    for method in METHODS:
        result = solve(problem, method)
        tolerance = 1e-6 if method == "linear-program" else 1e-13
        assert result.status.value == "optimal", method
        assert abs(Fraction(result.objective) - best) <= tolerance * best, method
        assert (
            abs(Fraction(result.bound) - Fraction(problem.widened(1.0)) * best) <= tolerance * best
        ), method
        assert Fraction(result.bound) >= best, method


@pytest.mark.parametrize("seed", range(CASES))
def test_exact_methods_are_right_on_random_sticky_chains(seed: int) -> None:
    """Tests that objectives and widened bounds are right to 1e-13, those of the linear program to
    1e-6.
    """
    check(corner(seed))


def test_the_chain_on_which_brute_force_lost_its_digits() -> None:
    """Tests that every exact method that takes the problem proves the judge's value of its plan."""
    check(load(EDGE))
