"""Rounds of paper 5 in which every position of a client's text has its own acceptance rate.

With recorded texts the rate of a position is its 1 - TV. It changes within a round, between texts
and along a text. A client with a constant rate has a text of one position. The verifier's own token
uses a position as well. Eq. 3 uses the mean rate of the drafted positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from papers.laboratory import lines
from specopt.models.fields import Floats, Ints
from specopt.online import GoodputScheduler
from specopt.solvers.fair_goodput.policies import Gradient


@dataclass(frozen=True, eq=False)
class Replay:
    """Tokens and drafts of all clients.

    Parameters
    ----------
    realised
        Tokens up to each round, shape (runs, rounds, N).
    expected
        Expected tokens of each round, given the drafts, of the same shape.
    allocations
        Drafts of each round, of the same shape.
    estimates
        Estimates of acceptance rates, or NaN, of the same shape.
    """

    realised: Floats
    expected: Floats
    allocations: Ints
    estimates: Floats

    def utility_curve(self) -> Floats:
        """Return the utility of the mean rates up to each round, averaged over runs (Figure 4)."""
        rounds = np.arange(1, self.expected.shape[1] + 1)[:, None]
        curve: Floats = np.log(self.expected / rounds).sum(axis=2).mean(axis=0)
        return curve


@cache
def texts(temperature: float) -> tuple[Floats, ...]:
    """Return the acceptance rates along the texts of each kind of task."""
    texts = (
        bytes.fromhex(line["acceptance"]) for line in lines("acceptance", temperature=temperature)
    )
    return tuple(np.frombuffer(one, np.uint8) / 255.0 for one in texts)


def replay(
    rates: Sequence[Floats],
    budget_tokens: int,
    policy: Gradient | Ints,
    *,
    seeds: Sequence[int],
    rounds: int,
) -> Replay:
    """Simulate rounds, one run per seed.

    Parameters
    ----------
    rates
        Acceptance rates along the texts of each client.
    budget_tokens
        Budget C.
    policy
        Algorithm 1, or the drafts of each round.
    seeds
        Seeds of the first positions and of the acceptance of drafts, the same for all policies.
    rounds
        Number of rounds.
    """
    runs = [_run(rates, budget_tokens, policy, seed, rounds) for seed in seeds]
    return Replay(*(np.array(column) for column in zip(*runs, strict=True)))


def _run(
    rates: Sequence[Floats], budget: int, policy: Gradient | Ints, seed: int, rounds: int
) -> tuple[Floats, Floats, Ints, Floats]:
    clients, luck = len(rates), np.random.default_rng(seed)
    sizes = np.array([len(one) for one in rates])
    table = np.zeros((clients, sizes.max()))
    for row, one in zip(table, rates, strict=True):
        row[: len(one)] = one
    scheduler = GoodputScheduler(clients, budget, policy) if isinstance(policy, Gradient) else None
    places, ahead = luck.integers(sizes), np.arange(budget)
    tokens, expected, estimates = np.full((3, rounds, clients), np.nan)
    allocations = np.empty((rounds, clients), np.int64)
    for number in range(rounds):
        drafts = policy[number] if scheduler is None else scheduler.allocate()
        positions = (places[:, None] + ahead) % sizes[:, None]
        chances = table[np.arange(clients)[:, None], positions]
        drafted = ahead < drafts[:, None]
        accepted = np.cumprod((luck.uniform(size=chances.shape) < chances) & drafted, axis=1).sum(
            axis=1
        )
        if scheduler is not None:
            seen = np.where(
                drafts > 0, (chances * drafted).sum(axis=1) / np.maximum(1, drafts), 0.0
            )
            scheduler.observe(accepted, acceptance_ratios=seen)
            estimates[number] = scheduler.estimates
        places = (places + accepted + 1) % sizes
        tokens[number], allocations[number] = accepted + 1, drafts
        expected[number] = 1.0 + np.cumprod(chances * drafted, axis=1).sum(axis=1)
    return np.cumsum(tokens, axis=0), np.cumsum(expected, axis=0), allocations, estimates
