"""Random problems of fair goodput in the corners: steep fairness, weights over 12 decades, least
rates at the edge.
"""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import numpy as np
from hypothesis import reject

from specopt import FairGoodputProblem, InvalidInput
from specopt.models.acceptance import expected_tokens

RATES = (0.0, 1e-9, 0.3, 0.5, 0.9, 0.999, 1 - 1e-6)
FAIRNESS = (0.0, 0.5, 0.9, 0.999999, 1.0, 1.000001, 1.5, 2.0, 5.0, 12.0, 40.0, 100.0)


def corner(seed: int) -> FairGoodputProblem:
    """Return a random problem of at most 210 allocations."""
    random = Random(seed)
    while True:
        try:
            return _problem(random)
        except InvalidInput:  # the utility leaves the range of floating-point numbers
            continue


def as_steep(problem: FairGoodputProblem, fairness: float) -> FairGoodputProblem:
    """Return the problem with another fairness, if its utility is in the range of floating-point
    numbers then.
    """
    try:
        return dataclasses.replace(problem, fairness=fairness)
    except InvalidInput:
        reject()


def _problem(random: Random) -> FairGoodputProblem:
    size = random.randint(1, 4)
    data: dict[str, Any] = {
        "format": "specopt/1",
        "kind": "fair-goodput",
        "budget_tokens": random.randint(0, 6),
        "acceptance_rates": [
            random.choice((random.random(), random.choice(RATES))) for _ in range(size)
        ],
        "fairness": random.choice(
            (random.uniform(0, 6), random.choice(FAIRNESS), random.choice(FAIRNESS))
        ),
        "per": random.choice(("round", "second")),
    }
    if random.random() < 0.7:
        data["weights"] = [10 ** random.uniform(-6, 6) for _ in range(size)]
    if random.random() < 0.3:
        data["max_draft_tokens"] = [random.randint(0, 6) for _ in range(size)]
    if data["per"] == "second":
        unit = 10 ** random.uniform(-3, 2)

        def seconds() -> float:
            return random.choice((0.0, unit * random.random(), unit * random.random() * 5))

        data["draft_seconds_per_token"] = [seconds() for _ in range(size)]
        data["network_seconds"] = [seconds() for _ in range(size)]
        data["verify_overhead_seconds"] = unit * random.choice((1e-3, 1.0, random.random()))
        data["verify_seconds_per_token"] = random.choice((0.0, 0.01, 0.2)) * unit
    problem = FairGoodputProblem.from_dict(data)
    if random.random() < 0.5:
        data["min_goodput"] = _least(random, problem)
    return FairGoodputProblem.from_dict(data)


def _least(random: Random, problem: FairGoodputProblem) -> list[float]:
    """Return least rates: parts of what a random mixture gives, from a half of it to a little more
    than all.
    """
    given = np.zeros(problem.clients)
    for share in (0.3, 0.7):
        tokens = np.zeros(problem.clients, dtype=np.int64)
        for _ in range(problem.budget_tokens):
            client = random.randrange(problem.clients)
            tokens[client] += tokens[client] < problem.max_tokens[client]
        seconds = problem.round_seconds(tokens) if problem.per == "second" else 1.0
        given += share * expected_tokens(problem.acceptance_rates, tokens) / seconds
    part = random.choice(
        (0.5, 0.9, 0.999, 1.0 - 1e-9, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1.0 + 1e-7, 1.1)
    )
    return [random.choice((0.0, part, part)) * float(rate) for rate in given]
