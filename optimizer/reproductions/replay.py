"""Rounds of paper 5 on recorded drafts: every client writes texts of one kind of task, position after position.

A position is accepted with its own recorded probability, 1 - TV, so that rates move within a round, from text to text
and along a text. The verifier's own token takes a position, too. Eq. 3 takes the mean probability of what was
drafted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.online import GoodputScheduler
from specopt.reproductions.laboratory import lines
from specopt.solvers.fair_goodput.policies import Gradient


@dataclass(frozen=True, eq=False)
class Replay:
    """What clients got.

    Parameters
    ----------
    realised, expected
        Tokens up to each round, and what was expected of each round before its luck; shape (runs, rounds, N).
    allocations
        Drafts of each round, of the same shape.
    errors
        How far the time average of each client's estimate is from the mean rate of its texts, shape (runs, N); NaN
        under policies that estimate nothing.
    """

    realised: Floats
    expected: Floats
    allocations: Ints
    errors: Floats

    def utility_curve(self, *, realised: bool = False) -> Floats:
        """Return the utility of the mean rates up to each round, averaged over runs (Figure 4)."""
        sums = self.realised if realised else self.expected
        curve: Floats = np.log(sums / np.arange(1, sums.shape[1] + 1)[:, None]).sum(axis=2).mean(axis=0)
        return curve


@cache
def texts(temperature: float) -> tuple[Floats, ...]:
    """Return the acceptance along the texts of each kind of task."""
    texts = (bytes.fromhex(line["acceptance"]) for line in lines("acceptance", temperature=temperature))
    return tuple(np.frombuffer(one, np.uint8) / 255.0 for one in texts)


def replay(
    clients: int, budget_tokens: int, policy: Gradient | str, *, temperature: float, seeds: Sequence[int], rounds: int
) -> Replay:
    """Play rounds, a run per seed.

    Parameters
    ----------
    clients, budget_tokens
        N and C; the first N kinds of task.
    policy
        Algorithm 1, "fixed" or "random".
    temperature
        Of the recorded runs.
    seeds
        Each draws where texts begin and every draft's luck, the same for all policies.
    rounds
        How many.
    """
    runs = [_run(clients, budget_tokens, policy, texts(temperature)[:clients], seed, rounds) for seed in seeds]
    return Replay(*(np.array(column) for column in zip(*runs, strict=True)))


def _run(
    clients: int, budget: int, policy: Gradient | str, rates: Sequence[Floats], seed: int, rounds: int
) -> tuple[Floats, Floats, Ints, Floats]:
    luck, chance = (np.random.default_rng((seed, side)) for side in range(2))
    sizes = np.array([len(one) for one in rates])
    table = np.zeros((clients, sizes.max()))
    for row, one in zip(table, rates, strict=True):
        row[: len(one)] = one
    scheduler = GoodputScheduler(clients, budget, policy) if isinstance(policy, Gradient) else None
    fixed = np.full(clients, budget // clients)
    places = luck.integers(sizes)
    ahead, estimated = np.arange(budget), np.zeros(clients)
    tokens, expected = np.empty((2, rounds, clients))
    allocations = np.empty((rounds, clients), dtype=np.int64)
    for number in range(rounds):
        if scheduler is not None:
            drafts = scheduler.allocate()
        else:
            drafts = fixed if policy == "fixed" else chance.multinomial(budget, np.full(clients, 1.0 / clients))
        positions = (places[:, None] + ahead) % sizes[:, None]
        chances = table[np.arange(clients)[:, None], positions]
        drafted = ahead < drafts[:, None]
        accepted = np.cumprod((luck.uniform(size=chances.shape) < chances) & drafted, axis=1).sum(axis=1)
        if scheduler is not None:
            seen = np.where(drafts > 0, (chances * drafted).sum(axis=1) / np.maximum(1, drafts), 0.0)
            scheduler.observe(accepted, acceptance_ratios=seen)
            estimated += scheduler.estimates
        places = (places + accepted + 1) % sizes
        tokens[number], allocations[number] = accepted + 1, drafts
        expected[number] = 1.0 + np.cumprod(chances * drafted, axis=1).sum(axis=1)
    means = np.array([one.mean() for one in rates])
    errors = np.full(clients, np.nan) if scheduler is None else np.abs(estimated / rounds - means)
    return np.cumsum(tokens, axis=0), np.cumsum(expected, axis=0), allocations, errors
