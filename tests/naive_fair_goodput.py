"""Fair goodput again, from paper 5 and the file format; imports nothing of the package.

Slow and obvious: sums term by term, schedules played entry by entry, every integer allocation. Everything works on
the JSON form of a problem and of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

Json = dict[str, Any]


def mu(rate: float, drafts: int) -> float:
    """1 + a + ... + a^S."""
    return math.fsum(rate**k for k in range(drafts + 1))


def seconds(problem: Json, drafts: Sequence[int]) -> float:
    """How long a round lasts; 1 where rates are per round."""
    if problem.get("per", "round") == "round":
        return 1.0
    rows = zip(drafts, problem["draft_seconds_per_token"], problem["network_seconds"], strict=True)
    slowest = max(count * draft + network for count, draft, network in rows)
    return float(slowest + problem["verify_overhead_seconds"] + problem["verify_seconds_per_token"] * sum(drafts))


def rates(problem: Json, drafts: Sequence[int]) -> list[float]:
    """What every client gains while rounds have one allocation."""
    lasts = seconds(problem, drafts)
    return [mu(a, count) / lasts for a, count in zip(problem["acceptance_rates"], drafts, strict=True)]


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
    return [math.fsum(parts) for parts in goodput], [math.fsum(parts) / math.fsum(rounds) for parts in drafts]


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
    every = [(sum(s) <= problem["budget_tokens"], all(map(int.__le__, s, caps(problem)))) for _, s in entries(schedule)]
    return all(map(all, every)) and abs(math.fsum(entry["share"] for entry in schedule) - 1) <= 1e-9


def allocations(limits: Sequence[int], budget: int) -> Iterator[tuple[int, ...]]:
    """Every integer allocation within caps and budget."""
    if not limits:
        yield ()
        return
    for first in range(min(limits[0], budget) + 1):
        for rest in allocations(limits[1:], budget - first):
            yield (first, *rest)


def columns(problem: Json) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The rates of every allocation, one per column."""
    every = allocations(caps(problem), problem["budget_tokens"])
    return np.array([rates(problem, drafts) for drafts in every]).T


def certificate(problem: Json, goodput: Sequence[float]) -> float:
    """max over mixtures y of grad U(x) . (y - x): by concavity no plan's utility exceeds U(x) by more.

    Without least rates the largest value is at a single allocation; with them it is a linear program.
    """
    x = np.array(goodput)
    weights = np.array(problem.get("weights") or [1.0] * len(x))
    slope = weights * x ** -problem.get("fairness", 1.0)
    table = columns(problem)
    values = slope @ table
    if "min_goodput" not in problem:
        return float(values.max() - slope @ x)
    found = linprog(
        -values / values.max(),
        A_ub=-table,
        b_ub=-(np.array(problem["min_goodput"]) * (1 - 1e-12)),
        A_eq=np.ones((1, len(values))),
        b_eq=[1.0],
    )
    return float(-found.fun * values.max() - slope @ x)


def least_rates_reach(problem: Json) -> float:
    """The largest part of all least rates that some mixture gives to everybody at once; infinite if none is due."""
    least = np.array(problem.get("min_goodput") or [0.0])
    if not least.any():
        return math.inf
    table = columns(problem)
    found = linprog(
        np.append(np.zeros(table.shape[1]), -1.0),
        A_ub=np.column_stack((-table, least)),
        b_ub=np.zeros(len(least)),
        A_eq=np.append(np.ones(table.shape[1]), 0.0)[None],
        b_eq=[1.0],
    )
    return float(-found.fun)
