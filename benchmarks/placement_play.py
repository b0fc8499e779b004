"""Placement: compare the judged cycles and the judge's best place with simulated plans."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from table import Benchmark, Row

from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import PlacementProblem
from specopt.solvers.placement.simulate import simulate

Json = dict[str, Any]
UNITS = 3000
CHOICES = 1000
CLOSE = 0.15
"""A problem is near the border if its best two places differ by at most this share in the judge's
values.
"""
PLAYED = 0.75
"""Places whose judged value is less than this share of the best are not simulated."""
WAYS = ("none", "beside", "device", "ahead", "pool")
"""The places, including the device with drafting ahead."""
BATCHES = (("b >= 8", 0.97), ("b < 8", 0.0), ("lightly loaded", 0.0))
"""Kinds of units, and the minimum share of entries within 5 %."""
QUANTILES = (np.arange(20) + 0.5) / 20


def _uniform(random: np.random.Generator, low: float, high: float) -> float:
    """Draw a number with a uniformly distributed logarithm."""
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _trip(mean: float) -> list[float]:
    """Return the quantiles of trips with a given mean."""
    values: list[float] = (mean * (0.9 - 0.1 * np.log1p(-QUANTILES))).tolist()
    return values


def _passes(random: np.random.Generator, overhead: float) -> list[Json]:
    """Draw the passes of a machine, which take the maximum of reading (weights and contexts) and
    computing (tokens).
    """
    per_token = overhead / _uniform(random, 30.0, 600.0)
    read = {
        "overhead_seconds": overhead,
        "seconds_per_sequence": overhead * _uniform(random, 1e-4, 1e-2),
        "seconds_per_token": 0.0,
        "seconds_per_cached_token": overhead * _uniform(random, 1e-7, 1e-5),
    }
    compute = {**read, "overhead_seconds": 0.2 * overhead, "seconds_per_token": per_token}
    return [read, compute]


def _problem(random: np.random.Generator, counts: list[int]) -> Json:
    """Draw a verifier of one unit, a drafter that can run anywhere, a pool, and classes with the
    given numbers of clients.
    """
    overhead, longest = _uniform(random, 0.01, 0.08), int(random.integers(1, 9))
    draft = overhead * _uniform(random, 0.02, 0.3)
    rows = []
    for i, clients in enumerate(counts):
        rows.append(
            {
                "name": f"class {i}",
                "clients": clients,
                "context_tokens": int(random.integers(100, 4000)),
                "acceptance": {"drafter": random.uniform(0.4, 0.95)},
                "device_seconds_per_token": {"drafter": draft * _uniform(random, 0.5, 8.0)},
                "round_trip_seconds": {"verifier": _trip(_uniform(random, 0.002, 0.2))},
                "uplink_bits_per_second": _uniform(random, 1e4, 1e7),
            }
        )
    return {
        "format": "specopt/1",
        "kind": PlacementProblem.kind,
        "objective": "goodput",
        "max_draft_tokens": longest,
        "bits_per_draft_token": 17.0,
        "classes": rows,
        "verifiers": [
            {
                "name": "verifier",
                "units": 1,
                "memory_bytes": 1e15,
                "weights_bytes": 0.0,
                "kv_bytes_per_token": 1.0,
                "passes": _passes(random, overhead),
            }
        ],
        "drafters": [
            {
                "name": "drafter",
                "kind": str(random.choice(["sequential", "parallel"])),
                "weights_bytes": 0.0,
                "kv_bytes_per_token": 1.0,
                "beside": {"verifier": _passes(random, draft)},
                "server": {"pool": _passes(random, draft)},
            }
        ],
        "draft_pools": [
            {
                "name": "pool",
                "units": 1000,
                "memory_bytes": 1e15,
                "round_trip_seconds": {"verifier": _trip(_uniform(random, 0.0002, 0.02))},
            }
        ],
    }


def _client(way: str, row: Json, tokens: int) -> Json:
    """Return the entry of a plan that places all clients of a class on one unit."""
    entry: Json = {
        "class": row["name"],
        "per_unit": row["clients"],
        "place": "device" if way == "ahead" else way,
    }
    if way in ("device", "ahead"):
        entry |= {"drafter": "drafter", "overlap": way == "ahead"}
    if way == "pool":
        entry["draft_group"] = 0
    return entry | ({"draft_tokens": tokens} if way in ("device", "ahead", "pool") else {})


def _plan(ways: list[str], rows: list[Json], tokens: int, held: int) -> PlacementPlan:
    """Return the plan of one unit. Each draft unit serves the given number of clients."""
    clients = [_client(way, row, tokens) for way, row in zip(ways, rows, strict=True)]
    pooled = sum(one["per_unit"] for one in clients if one["place"] == "pool")
    beside = {"drafter": "drafter", "draft_tokens": tokens} if ways[0] == "beside" else None
    draft = {"pool": "pool", "drafter": "drafter", "units": -(-pooled // held), "per_unit": held}
    return PlacementPlan.from_dict(
        {
            "groups": [{"verifier": "verifier", "units": 1, "beside": beside, "clients": clients}],
            "draft_groups": [draft] if pooled else [],
        }
    )


def _count(random: np.random.Generator, most: float) -> int:
    return max(1, round(_uniform(random, 1.0, most)))


def cycles(smoke: bool) -> list[Row]:
    """Report the share of judged cycles within 5 % of the simulated ones, by place and batch, on
    random units.
    """
    random = np.random.default_rng(1)
    errors: dict[str, list[tuple[str, float]]] = {batch: [] for batch, _ in BATCHES}
    for _ in range(4 if smoke else UNITS):
        data = _problem(random, [_count(random, 96.0) for _ in range(random.integers(1, 4))])
        rows, tokens = data["classes"], int(random.integers(1, data["max_draft_tokens"] + 1))
        ways = [
            str(way) for way in random.choice([way for way in WAYS if way != "beside"], len(rows))
        ]
        ways = ["beside"] * len(rows) if random.random() < 0.2 else ways
        plan = _plan(ways, rows, tokens, _count(random, 32.0))
        problem = PlacementProblem.from_dict(data)
        run = problem.unit(plan, plan.groups[0])
        batch = "lightly loaded" if run.batch == 1.0 else "b >= 8" if run.batch >= 8.0 else "b < 8"
        seed = int(random.integers(1 << 30))
        played = simulate(problem, plan, seed=seed, replications=2, rounds=20 if smoke else 200)
        errors[batch] += zip(ways, played.judged_cycles / played.cycles - 1.0, strict=True)
    table = []
    for batch, goal in BATCHES:
        for way in ("all", *WAYS):
            found = np.array([error for one, error in errors[batch] if way in ("all", one)])
            if len(found):
                share, (low, high) = (
                    float((np.abs(found) <= 0.05).mean()),
                    np.quantile(found, [0.01, 0.99]),
                )
                figure = f"{share:.1%} of {len(found)} (1 to 99 %: {low:+.1%} to {high:+.1%})"
                held = goal if way == "all" else 0.0
                table.append(
                    Row(
                        f"{batch}, {way}: entries within 5 %",
                        figure,
                        f"{held:.0%}" if held else "",
                        share >= held if held else None,
                    )
                )
    return table


def _best(problem: PlacementProblem, rows: list[Json]) -> dict[str, tuple[float, PlacementPlan]]:
    """Return the judge's best plan for every place, over all draft lengths, drafting ahead or not,
    and sizes of draft units.
    """
    best: dict[str, tuple[float, PlacementPlan]] = {}
    for way in WAYS:
        place = "device" if way == "ahead" else way
        for tokens in range(1, problem.max_draft_tokens + 1):
            for held in (1, 4, 16) if way == "pool" else (1,):
                plan = _plan([way], rows, tokens, held)
                worth = problem.evaluate(plan).objective
                if place not in best or worth > best[place][0]:
                    best[place] = worth, plan
    return best


def places(smoke: bool) -> list[Row]:
    """Compare the judge's best place with the best simulated place, if the best two places are
    close in the judge's values.
    """
    random = np.random.default_rng(2)
    # whether it is the judge's choice, the loss, and the gap to the second
    found: list[tuple[bool, float, float]] = []
    confused: Counter[str] = Counter()
    while len(found) < (2 if smoke else CHOICES):
        data = _problem(random, [_count(random, 128.0)])
        problem = PlacementProblem.from_dict(data)
        best = _best(problem, data["classes"])
        first, second = sorted(best, key=lambda place: -best[place][0])[:2]
        if best[second][0] < (1.0 - CLOSE) * best[first][0]:
            continue
        played = {
            place: (
                simulate(
                    problem, plan, seed=len(found), replications=2, rounds=20 if smoke else 400
                ).mean
            )
            for place, (worth, plan) in best.items()
            if worth >= PLAYED * best[first][0]
        }
        winner = max(played, key=played.__getitem__)
        confused[f"{first} for {winner}"] += winner != first
        found.append(
            (
                winner == first,
                1.0 - played[first] / played[winner],
                1.0 - best[second][0] / best[first][0],
            )
        )
    wrong = ", ".join(f"{names} {count}" for names, count in confused.most_common() if count)
    named, lost, apart = (np.array(column) for column in zip(*found, strict=True))
    table = [
        Row(
            f"the best two within {CLOSE:.0%}: the best place is named",
            f"{named.mean():.1%} of {len(named)} ({wrong})",
            "95%",
            bool(named.mean() >= 0.95),
        )
    ]
    close = apart <= CLOSE / 3.0
    if close.any():
        table.append(
            Row(
                f"the best two within {CLOSE / 3.0:.0%}: the best place is named",
                f"{named[close].mean():.1%} of {close.sum()}",
            )
        )
    figure = (
        f"mean {lost.mean():.2%}, 99 % of problems at most {np.quantile(lost, 0.99):.1%}, largest"
        f" {lost.max():.1%}"
    )
    return [*table, Row("tokens per second lost by the place that is named", figure)]


BENCHMARKS = (
    Benchmark("placement played: cycles", cycles),
    Benchmark("placement played: places", places),
)
