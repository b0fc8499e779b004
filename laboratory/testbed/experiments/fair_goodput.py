"""Fair goodput: schedules of several methods, played in rounds with real acceptance.

Clients differ in their requests. Each one has prompts of its own kind of task, and its acceptance
rate comes from other prompts of that kind. Goodput is measured per round. The value of a plan is
its certainty equivalent, the geometric mean of the clients' tokens per round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.api.solve import solve
from specopt.models.errors import Unsupported
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.models.fields import Floats
from testbed.calibration import acceptance_rate
from testbed.decoding import Sampling
from testbed.pairs import draw_prompts
from testbed.plays.fair_goodput import play
from testbed.processes import Laboratory
from testbed.records import Keep

KIND = FairGoodputProblem.kind
OURS, RIVALS = "dual", ("fixed", "random")

METHODS = (OURS, *RIVALS)
"""Methods whose schedules are played: ours, and the two baselines of paper 5. The method of the
paper converges to ours.
"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the plays.

    Parameters
    ----------
    clients
        Number of clients. With eight, each has a kind of task.
    budgets
        Draft tokens per round, one value per scene.
    rounds, per_prompt
        Rounds of a play, and of each prompt in it.
    known_rounds, known_length
        Rounds of each client that determine its acceptance rate, and the drafts in each.
    temperature
        Of sampling.
    repeats
        Number of plays of each schedule, with different random numbers.
    seed
        Seed of all random numbers.
    """

    clients: int = 8
    budgets: tuple[int, ...] = (8, 20)
    rounds: int = 40
    per_prompt: int = 10
    known_rounds: int = 40
    known_length: int = 4
    temperature: float = 1.0
    repeats: int = 2
    seed: int = 0


TINY = Settings(clients=4, budgets=(6,), rounds=12, per_prompt=6, known_rounds=12, known_length=3)
"""Settings for tests, which are played in seconds."""


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Play rounds on other prompts, and record problems, schedules and predictions."""
    per_client = -(-max(settings.rounds, settings.known_rounds) // settings.per_prompt)
    known, played = (
        [drawn[client :: settings.clients] for client in range(settings.clients)]
        for drawn in (
            draw_prompts(
                laboratory.pair, settings.clients * per_client, played=played, seed=settings.seed
            )
            for played in (False, True)
        )
    )
    rounds = [[settings.known_length] * settings.clients] * settings.known_rounds
    sampling = Sampling(temperature=settings.temperature, seed=settings.seed + 1000)

    def measure() -> dict[str, Any]:
        accepted = play(
            laboratory, rounds, known, per_prompt=settings.per_prompt, sampling=sampling
        )
        return {"length": settings.known_length, "accepted": accepted.T.tolist()}

    data: dict[str, Any] = {
        "models": {
            worker.side: worker.config.name for worker in (laboratory.draft, laboratory.verify)
        },
        "known": keep("known", measure),
        "problems": [],
        "prompts": played,
        "trials": [],
    }
    for scene, budget in enumerate(settings.budgets):
        problem = problem_of(data["known"], budget)
        data["problems"].append(problem.to_dict())
        for method in METHODS:
            try:
                plan = solve(problem, method, seed=settings.seed).plan
            except Unsupported:
                continue
            assert isinstance(plan, FairGoodputPlan), "every problem has schedules"
            expected, _ = problem.realised(plan.schedule)
            trial = {
                "scene": scene,
                "label": "schedules",
                "problem": scene,
                "methods": [method],
                "plan": plan.to_dict(),
            }
            data["trials"].append(
                {**trial, "predicted": {"model": worth(expected)}, "measured": []}
            )
    return data


def problem_of(known: dict[str, Any], budget: int) -> FairGoodputProblem:
    """Return the problem for a budget, based on the rounds on other prompts."""
    rates = [acceptance_rate([accepted], known["length"]) for accepted in known["accepted"]]
    return FairGoodputProblem(acceptance_rates=np.clip(rates, 0.0, 0.999), budget_tokens=budget)


def worth(goodput: Floats) -> dict[str, float]:
    """Return the common value of the rates of clients: their geometric mean, and their sum."""
    return {
        "fair_tokens_per_round": float(np.exp(np.log(goodput).mean())),
        "tokens_per_round": float(goodput.sum()),
    }


def rounds_of(plan: FairGoodputPlan, rounds: int) -> list[list[int]]:
    """Return the rounds of a schedule. Each round has the allocation that is furthest behind its
    share.
    """
    shares, allocations = zip(*plan.schedule.allocations(), strict=True)
    owed = np.zeros(len(shares))
    found = []
    for _ in range(rounds):
        owed += shares
        chosen = int(np.argmax(owed))
        owed[chosen] -= 1.0
        found.append(allocations[chosen].tolist())
    return found


def carry_out(
    laboratory: Laboratory, data: dict[str, Any], trial: dict[str, Any]
) -> dict[str, Any]:
    """Play a schedule."""
    settings = data["settings"]
    sampling = Sampling(
        temperature=settings["temperature"], seed=settings["seed"] + len(trial["measured"])
    )
    rounds = rounds_of(FairGoodputPlan.from_dict(trial["plan"]), settings["rounds"])
    accepted = play(
        laboratory, rounds, data["prompts"], per_prompt=settings["per_prompt"], sampling=sampling
    )
    return {**worth(accepted.mean(axis=0) + 1.0), "accepted": accepted}
