"""A family with random classes, acceptance rates that depend on the position, and random scores."""

from __future__ import annotations

import numpy as np

from specopt.instances.draft_stopping.scores import as_probabilities
from specopt.models.arguments import integer, number, random_generator
from specopt.models.draft_stopping.problem import DraftStoppingProblem, RoundClass
from specopt.models.drafting import Scores


def random(
    *,
    classes: int = 3,
    bins: int = 4,
    max_draft: int = 8,
    signal: float = 1.0,
    drift: float = 0.1,
    most_cost: float = 0.3,
    seed: int = 0,
) -> DraftStoppingProblem:
    """Classes of rounds with random frequencies, random scores, and acceptance rates that drift
    with the position.

    Parameters
    ----------
    classes
        Number C of classes.
    bins
        Number B of score bins.
    max_draft
        Maximum draft length L.
    signal
        Difference between the log-odds of a bin at accepted tokens and at rejections.
    drift
        Standard deviation of the change in acceptance between positions, in log-odds.
    most_cost
        Maximum drafting time of a token, as a fraction of the duration of a round.
    seed
        Seed of `numpy.random.default_rng`.
    """
    classes = integer("classes", classes, 1, 1000)
    bins = integer("bins", bins, 1, 1000)
    max_draft = integer("max_draft", max_draft, 1, 1000)
    signal = number("signal", signal, 0, 100)
    most_cost = number("most_cost", most_cost, 0)
    rng = random_generator(seed)
    odds = rng.normal(1.0, 1.2, (classes, 1)) + np.cumsum(
        rng.normal(0.0, number("drift", drift, 0, 10), (classes, max_draft)), axis=1
    )
    rates = np.round(1.0 / (1.0 + np.exp(-odds)), 6)
    noise = rng.normal(size=(4, bins))
    accepted, rejected, after = (
        np.exp(0.5 * (signal * sign * noise[3] + noise[i])) for i, sign in enumerate((1, -1, -0.5))
    )
    seconds = 0.15
    return DraftStoppingProblem(
        max_draft_tokens=max_draft,
        draft_seconds_per_token=round(seconds * rng.uniform(0.02 * most_cost, most_cost), 6),
        round_seconds=seconds,
        rounds=tuple(
            RoundClass(probability=part, acceptance_rate=rate)
            for part, rate in zip(
                as_probabilities(rng.uniform(0.2, 1.0, classes)).tolist(), rates, strict=True
            )
        ),
        scores=Scores(
            accepted=as_probabilities(accepted),
            first_rejection=as_probabilities(rejected),
            after=as_probabilities(after),
        ),
    )
