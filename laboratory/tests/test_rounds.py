"""Simulated rounds of verification: the distribution of their output, and rejected input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from papers.lattice_points import nearest_counts, quantised
from papers.speculative_sampling import output_law

from specopt.models.errors import InvalidInput
from testbed.rounds import verify_round


def outcomes(
    server: Any, checked: Any, drawn: Any, rounds: int, seed: int = 0
) -> NDArray[np.float64]:
    """Return the relative frequency of every first new token."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(len(server[0]))
    for _ in range(rounds):
        tokens = [int(rng.choice(len(law), p=law)) for law in drawn]
        accepted, own = verify_round(server, checked, tokens, rng)
        counts[tokens[0] if accepted else own] += 1
    return counts / rounds


@pytest.mark.parametrize("quantise_first", [True, False])
def test_rounds_have_the_output_law(quantise_first: bool) -> None:
    """Tests that the first new token of simulated rounds has the output distribution, within four
    standard deviations.
    """
    server = np.array([[0.5, 0.3, 0.2, 0.0], [0.25, 0.25, 0.25, 0.25]])
    q = np.array([[0.4, 0.35, 0.15, 0.1]])
    q_hat = quantised(nearest_counts(q, 3))
    drawn = q_hat if quantise_first else q
    law = output_law(server[0], drawn[0], q_hat[0])
    assert (np.abs(law - server[0]).max() < 1e-15) == quantise_first
    found = outcomes(server, q_hat, drawn, 4000)
    assert (np.abs(found - law) <= 4.0 * np.sqrt(law * (1.0 - law) / 4000) + 1e-12).all()


def test_rounds_that_are_certain() -> None:
    """Tests that rounds with certain outcomes have them: all drafts accepted, the first one
    rejected, and no drafts.
    """
    rng = np.random.default_rng(0)
    point = np.eye(3)
    assert verify_round(point, point[:2], [0, 1], rng) == (2, 2)
    assert verify_round(point, point[[1, 1]], [1, 1], rng) == (0, 0)
    assert verify_round(point, point[[0, 0]], [0, 0], rng) == (1, 1)
    assert verify_round(point[2:], np.zeros((0, 3)), [], rng) == (0, 2)


def test_impossible_tokens_are_never_drawn() -> None:
    """Tests that the smallest possible random number does not draw a first token with probability
    0.
    """

    class Least(np.random.Generator):
        def random(self, *args: Any, **kwargs: Any) -> Any:
            return 0.0

    law = np.array([[0.0, 0.25, 0.75]])
    assert verify_round(law, np.zeros((0, 3)), [], Least(np.random.PCG64(0))) == (0, 1)


@pytest.mark.parametrize(
    ("server", "checked", "tokens", "message"),
    [
        (np.eye(3), np.eye(3), [0, 1], "verification_laws: expected shape"),
        (np.eye(3), np.eye(3)[:2], [0], "tokens: expected 2 integers from 0 to 2"),
        (np.eye(3), np.eye(3)[:2], [0, 3], "tokens: expected 2 integers"),
        (np.eye(3), np.eye(3)[:2], [0.0, 1.0], "tokens: expected 2 integers"),
        (np.ones(1), np.ones(1), [], "server_laws: expected shape"),
        (np.zeros((0, 3)), np.ones(1), [], "server_laws: expected shape"),
    ],
)
def test_rounds_are_checked(server: Any, checked: Any, tokens: Any, message: str) -> None:
    """Tests that distributions and tokens that do not match are rejected."""
    with pytest.raises(InvalidInput, match=message):
        verify_round(server, checked, tokens, np.random.default_rng(0))
