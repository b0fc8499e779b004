"""Fair goodput again, from paper 5 and the file format; imports nothing of the package.

Slow and obvious: sums term by term, schedules played entry by entry, every integer allocation.
Everything works on the JSON form of a problem and of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

Json = dict[str, Any]
Array = np.ndarray[Any, np.dtype[np.float64]]

CAREFUL = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "presolve": False,
}
"""Of linear programs: the smallest tolerances that there are; presolving calls infeasible what is
just reached.
"""


def mu(rate: float, drafts: int) -> float:
    """1 + a + ... + a^S."""
    return math.fsum(rate**k for k in range(drafts + 1))


def seconds(problem: Json, drafts: Sequence[int]) -> float:
    """How long a round lasts; 1 where rates are per round."""
    if problem.get("per", "round") == "round":
        return 1.0
    rows = zip(drafts, problem["draft_seconds_per_token"], problem["network_seconds"], strict=True)
    slowest = max(count * draft + network for count, draft, network in rows)
    return float(
        slowest
        + problem["verify_overhead_seconds"]
        + problem["verify_seconds_per_token"] * sum(drafts)
    )


def rates(problem: Json, drafts: Sequence[int]) -> list[float]:
    """What every client gains while rounds have one allocation."""
    lasts = seconds(problem, drafts)
    return [
        mu(a, count) / lasts for a, count in zip(problem["acceptance_rates"], drafts, strict=True)
    ]


def entries(schedule: list[Json]) -> Iterator[tuple[float, list[int]]]:
    """Share and allocation of every entry."""
    current: list[int] = []
    for entry in schedule:
        if "draft_tokens" in entry:
            current = list(entry["draft_tokens"])
        else:
            current = list(current)
            for client, tokens in entry["changes"]:
                current[client] = tokens
        yield entry["share"], current


def played(problem: Json, schedule: list[Json]) -> tuple[list[float], list[float]]:
    """Goodput, and mean draft tokens per round, of every client."""
    count = len(problem["acceptance_rates"])
    goodput: list[list[float]] = [[] for _ in range(count)]
    drafts: list[list[float]] = [[] for _ in range(count)]
    rounds = []
    for share, allocation in entries(schedule):
        number = share / seconds(problem, allocation)
        rounds.append(number)
        for i, rate in enumerate(rates(problem, allocation)):
            goodput[i].append(share * rate)
            drafts[i].append(number * allocation[i])
    return [math.fsum(parts) for parts in goodput], [
        math.fsum(parts) / math.fsum(rounds) for parts in drafts
    ]


def utility(problem: Json, goodput: Sequence[float]) -> float:
    """sum w log x, or sum w x^(1-g) / (1-g)."""
    g = problem.get("fairness", 1.0)
    weights = problem.get("weights") or [1.0] * len(goodput)
    if g == 1.0:
        return math.fsum(w * math.log(x) for w, x in zip(weights, goodput, strict=True))
    return math.fsum(w * x ** (1 - g) / (1 - g) for w, x in zip(weights, goodput, strict=True))


def caps(problem: Json) -> list[int]:
    """Most draft tokens of each client in a round."""
    budget = problem["budget_tokens"]
    limits = problem.get("max_draft_tokens") or [budget] * len(problem["acceptance_rates"])
    return [min(limit, budget) for limit in limits]


def keeps_limits(problem: Json, schedule: list[Json]) -> bool:
    """Whether every entry keeps budget and caps, and the shares sum to 1."""
    every = [
        (sum(s) <= problem["budget_tokens"], all(map(int.__le__, s, caps(problem))))
        for _, s in entries(schedule)
    ]
    return all(map(all, every)) and abs(math.fsum(entry["share"] for entry in schedule) - 1) <= 1e-9


def allocations(limits: Sequence[int], budget: int) -> Iterator[tuple[int, ...]]:
    """Every integer allocation within caps and budget."""
    if not limits:
        yield ()
        return
    for first in range(min(limits[0], budget) + 1):
        for rest in allocations(limits[1:], budget - first):
            yield (first, *rest)


def columns(problem: Json) -> Array:
    """The rates of every allocation, one per column."""
    every = allocations(caps(problem), problem["budget_tokens"])
    return np.array([rates(problem, drafts) for drafts in every]).T


def gains(problem: Json, drafts: Sequence[int]) -> list[float]:
    """What an allocation gives beyond `floor`, without the digits that a sum with 1 loses."""
    if problem.get("per", "round") == "second":
        return rates(problem, drafts)
    every = zip(problem["acceptance_rates"], drafts, strict=True)
    return [math.fsum(a**k for k in range(1, count + 1)) for a, count in every]


def floor(problem: Json) -> float:
    """What every client gains whatever happens."""
    return 1.0 if problem.get("per", "round") == "round" else 0.0


def gain_table(problem: Json) -> tuple[Array, Array]:
    """The gains of every allocation, one per column, and the largest of each client: the units of
    linear programs.
    """
    every = allocations(caps(problem), problem["budget_tokens"])
    table = np.array([gains(problem, drafts) for drafts in every]).T
    most = table.max(axis=1)
    return table, np.where(most > 0.0, most, 1.0)


def certificate(problem: Json, schedule: list[Json]) -> float:
    """max over mixtures y of grad U(x) . (y - x): by concavity no plan's utility exceeds U(x) by
    more.

    Without least rates the largest value is at a single allocation; with them it is a linear
    program, in which y may fall short of them as far as x does.
    """
    played = [(share, gains(problem, drafts)) for share, drafts in entries(schedule)]
    x = np.array(
        [
            math.fsum(share * row[i] for share, row in played)
            for i in range(len(problem["acceptance_rates"]))
        ]
    )
    weights = np.array(problem.get("weights") or [1.0] * len(x))
    slope = weights * (floor(problem) + x) ** -problem.get("fairness", 1.0)
    table, unit = gain_table(problem)
    values = slope @ table
    if "min_goodput" not in problem or not values.any():
        return float(values.max() - slope @ x)
    due = np.minimum(np.array(problem["min_goodput"]) - floor(problem), x)
    table, values = (
        np.column_stack((table, x)),
        np.append(values, slope @ x),
    )  # so that rounding leaves a solution
    found = linprog(
        -values / values.max(),
        A_ub=-table / unit[:, None],
        b_ub=-due / unit,
        A_eq=np.ones((1, len(values))),
        b_eq=[1.0],
        options=CAREFUL,
    )
    return float(-found.fun * values.max() - slope @ x)


def shortage(problem: Json) -> tuple[float, float]:
    """By how much least rates are missed at least, in units of clients' largest gains, and how much
    of it is rounding.

    Negative if there is something left. A rate is a number of 16 digits: where a client can gain
    next to nothing beyond the floor, the last of them are worth whole tokens.
    """
    if "min_goodput" not in problem:
        return -math.inf, 0.0
    least, (table, unit) = np.array(problem["min_goodput"]), gain_table(problem)
    found = linprog(
        np.append(np.zeros(table.shape[1]), 1.0),
        A_ub=np.column_stack((-table / unit[:, None], -np.ones(len(least)))),
        b_ub=-np.clip((least - floor(problem)) / unit, -1e6, 1e6),
        A_eq=np.append(np.ones(table.shape[1]), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * table.shape[1] + [(None, None)],
        options=CAREFUL,
    )
    return float(found.fun), 1e-8 + 2e-12 * float((least / unit).max())
