"""Drafting rounds drawn at random: the Monte Carlo twin of every policy's closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from specopt.models.arguments import integer
from specopt.models.drafting import DraftingSetting, Scores
from specopt.models.errors import InvalidInput
from specopt.models.fields import Ints
from specopt.solvers.drafting.policy import DraftingPolicy

MOST_ROUNDS = 100_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedRounds:
    """Rounds of one policy.

    Parameters
    ----------
    accepted, wasted, drafted
        Tokens of every round.
    tokens_per_second, standard_error
        Token speed over all rounds, and its standard error (delta method).
    """

    accepted: Ints = field(repr=False)
    wasted: Ints = field(repr=False)
    drafted: Ints = field(repr=False)
    tokens_per_second: float
    standard_error: float


def simulate_rounds(
    setting: DraftingSetting,
    predictor: Scores,
    policy: DraftingPolicy,
    *,
    rounds: int = 100_000,
    seed: int = 0,
) -> SimulatedRounds:
    """Play a policy; the predictor may be another than the policy was made for, if it has as many bins.

    Parameters
    ----------
    setting, predictor
        Acceptance, costs and the distribution of scores.
    policy
        What is played.
    rounds
        How many, at least 2.
    seed
        Seed of the generator.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.
    """
    rounds, seed = integer("rounds", rounds, 2, MOST_ROUNDS), integer("seed", seed, 0)
    if len(policy.flagged) != predictor.bins:
        raise InvalidInput(f"predictor: expected {len(policy.flagged)} bins, as in the policy, got {predictor.bins}")
    from specopt.solvers._kernels import drafting as kernels

    N, W, D = (np.empty(rounds, dtype=np.int64) for _ in range(3))
    scores = kernels.Scores(setting.acceptance_rate, predictor.accepted, predictor.first_rejection, predictor.after)
    steering = kernels.DraftingPolicy(policy.window, policy.flagged, policy.sends_flagged, policy.thresholds)
    kernels.play(scores, steering, np.random.SeedSequence(seed).generate_state(1, np.uint64)[0], N, W, D)
    seconds = setting.overhead_seconds + setting.seconds_per_token * D
    speed = float((N + 1).sum() / seconds.sum())
    error = float(np.std(N + 1 - speed * seconds, ddof=1)) / (math.sqrt(rounds) * float(seconds.mean()))
    return SimulatedRounds(accepted=N, wasted=W, drafted=D, tokens_per_second=speed, standard_error=error)
