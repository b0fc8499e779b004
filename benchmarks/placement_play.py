"""Placement: the judge's cycles and its best place against plans that are played."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from table import Benchmark, Row

from specopt.models.placement import PlacementProblem
from specopt.models.placement_plan import PlacementPlan
from specopt.solvers.placement.simulate import simulate

Json = dict[str, Any]
UNITS = 3000
CHOICES = 400
CLOSE = 0.15
"""A problem is near the border if its best two places are within so much of each other, by the judge."""
QUANTILES = (np.arange(20) + 0.5) / 20


def _uniform(random: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _trip(mean: float) -> list[float]:
    """Return the quantiles that a mean trip stands for."""
    values: list[float] = (mean * (0.9 - 0.1 * np.log1p(-QUANTILES))).tolist()
    return values


def _passes(random: np.random.Generator, overhead: float) -> list[Json]:
    """Draw the passes of a machine: reading weights and contexts, or computing tokens, whatever takes longer."""
    per_token = overhead / _uniform(random, 30.0, 600.0)
    read = {"overhead_seconds": overhead, "seconds_per_sequence": overhead * _uniform(random, 1e-4, 1e-2),
            "seconds_per_token": 0.0, "seconds_per_cached_token": overhead * _uniform(random, 1e-7, 1e-5)}  # fmt: skip
    compute = {**read, "overhead_seconds": 0.2 * overhead, "seconds_per_token": per_token}
    return [read, compute]


def _problem(random: np.random.Generator, classes: int, clients: int) -> Json:
    """Draw a verifier of one unit, a drafter that can be anywhere, a pool and clients."""
    overhead, longest = _uniform(random, 0.01, 0.08), int(random.integers(1, 9))
    draft = overhead * _uniform(random, 0.02, 0.3)
    rows = []
    for i in range(classes):
        rows.append({
            "name": f"class {i}", "clients": clients, "context_tokens": int(random.integers(100, 4000)),
            "acceptance": {"drafter": random.uniform(0.4, 0.95)},
            "device_seconds_per_token": {"drafter": draft * _uniform(random, 0.5, 8.0)},
            "round_trip_seconds": {"verifier": _trip(_uniform(random, 0.002, 0.2))},
            "uplink_bits_per_second": _uniform(random, 1e4, 1e7),
        })  # fmt: skip
    return {
        "format": "specopt/1", "kind": PlacementProblem.kind, "objective": "goodput", "max_draft_tokens": longest,
        "bits_per_draft_token": 17.0, "classes": rows,
        "verifiers": [{"name": "verifier", "units": 1, "memory_bytes": 1e15, "weights_bytes": 0.0,
                       "kv_bytes_per_token": 1.0, "passes": _passes(random, overhead)}],
        "drafters": [{"name": "drafter", "kind": str(random.choice(["sequential", "parallel"])), "weights_bytes": 0.0,
                      "kv_bytes_per_token": 1.0, "beside": {"verifier": _passes(random, draft)},
                      "server": {"pool": _passes(random, draft)}}],
        "draft_pools": [{"name": "pool", "units": 1000, "memory_bytes": 1e15,
                         "round_trip_seconds": {"verifier": _trip(_uniform(random, 0.0002, 0.02))}}],
    }  # fmt: skip


PLACES = ("none", "beside", "device", "ahead", "pool")


def _client(place: str, row: Json, per_unit: int, tokens: int) -> Json:
    """Return an entry of a plan."""
    entry: Json = {"class": row["name"], "per_unit": per_unit, "place": "device" if place == "ahead" else place}
    if place in ("device", "ahead"):
        entry |= {"drafter": "drafter", "overlap": place == "ahead"}
    if place == "pool":
        entry["draft_group"] = 0
    return entry | ({"draft_tokens": tokens} if place in ("device", "ahead", "pool") else {})


def _plan(clients: list[Json], tokens: int, held: int) -> PlacementPlan:
    """Return the plan of one unit; draft units hold so many clients each."""
    pooled = sum(one["per_unit"] for one in clients if one["place"] == "pool")
    beside = {"drafter": "drafter", "draft_tokens": tokens} if clients[0]["place"] == "beside" else None
    draft = {"pool": "pool", "drafter": "drafter", "units": -(-pooled // held), "per_unit": held}
    return PlacementPlan.from_dict({
        "groups": [{"verifier": "verifier", "units": 1, "beside": beside, "clients": clients}],
        "draft_groups": [draft] if pooled else [],
    })  # fmt: skip


def cycles(smoke: bool) -> list[Row]:
    """Cycles of the judge within 5 % of those played, by place and batch, on random units."""
    random = np.random.default_rng(1)
    errors: dict[tuple[str, str], list[float]] = {}
    for _ in range(4 if smoke else UNITS):
        classes = int(random.integers(1, 4))
        counts = [max(1, round(_uniform(random, 1.0, 96.0))) for _ in range(classes)]
        data = _problem(random, classes, 1)
        for row, count in zip(data["classes"], counts, strict=True):
            row["clients"] = count
        tokens = int(random.integers(1, data["max_draft_tokens"] + 1))
        places = ["beside"] * classes if random.random() < 0.2 else [str(p) for p in random.choice(
            [one for one in PLACES if one != "beside"], classes)]  # fmt: skip
        clients = [_client(p, row, n, tokens) for p, row, n in zip(places, data["classes"], counts, strict=True)]
        pooled = sum(n for p, n in zip(places, counts, strict=True) if p == "pool")
        plan = _plan(clients, tokens, int(random.integers(1, min(pooled, 32) + 1)) if pooled else 1)
        problem = PlacementProblem.from_dict(data)
        run = problem.unit(plan, plan.groups[0])
        batch = "b >= 8" if run.busy == 1.0 and run.batch >= 8.0 else "b < 8" if run.busy == 1.0 else "light"
        played = simulate(
            problem, plan, seed=int(random.integers(1 << 30)), replications=2, rounds=20 if smoke else 200
        )
        for place, judged, found in zip(places, played.judged_cycles, played.cycles, strict=True):
            errors.setdefault((place, batch), []).append(judged / found - 1.0)
    rows = []
    for batch, goal in (("b >= 8", 0.97), ("b < 8", 0.0), ("light", 0.0)):
        for place in ("all", *PLACES):
            found = np.array([e for (p, b), es in errors.items() if b == batch and place in ("all", p) for e in es])
            if len(found):
                share = float((np.abs(found) <= 0.05).mean())
                low, high = np.quantile(found, [0.01, 0.99])
                target = goal if place == "all" else 0.0
                rows.append(Row(f"{batch}, {place}: entries within 5 %",
                                f"{share:.1%} of {len(found)} (1 to 99 %: {low:+.1%} to {high:+.1%})",
                                f"{target:.0%}" if target else "", share >= target if target else None))  # fmt: skip
    return rows


def places(smoke: bool) -> list[Row]:
    """The best place by the judge against the best by play, where the best two are close by the judge."""
    random = np.random.default_rng(2)
    named, lost, confused, tried = [], [], Counter(), 0
    while len(named) < (2 if smoke else CHOICES):
        tried += 1
        count = max(1, round(_uniform(random, 1.0, 128.0)))
        data = _problem(random, 1, count)
        problem = PlacementProblem.from_dict(data)
        best: dict[str, tuple[float, PlacementPlan]] = {}
        for place in PLACES:
            for tokens in range(1, data["max_draft_tokens"] + 1):
                plan = _plan([_client(place, data["classes"][0], count, tokens)], tokens, min(count, 8))
                worth = problem.evaluate(plan).objective
                if place not in best or worth > best[place][0]:
                    best[place] = worth, plan
        order = sorted(best, key=lambda place: -best[place][0])
        if best[order[1]][0] < (1.0 - CLOSE) * best[order[0]][0]:
            continue
        played = {
            place: simulate(problem, plan, seed=tried, replications=2, rounds=20 if smoke else 400).mean
            for place, (worth, plan) in best.items()
            if worth >= 0.75 * best[order[0]][0]
        }
        winner = max(played, key=played.__getitem__)
        named.append(winner == order[0])
        lost.append(1.0 - played[order[0]] / played[winner])
        if winner != order[0]:
            confused[order[0], winner] += 1
    share = float(np.mean(named))
    wrong = ", ".join(f"{a} for {b} {n}" for (a, b), n in confused.most_common())
    return [
        Row("the best place is named", f"{share:.1%} of {len(named)} ({wrong})", "95%", share >= 0.95),
        Row("tokens per second lost by what is named", f"mean {np.mean(lost):.2%}, 95 %: {np.quantile(lost, 0.95):.2%}, "
            f"most {max(lost):.2%}"),
    ]  # fmt: skip


BENCHMARKS = (
    Benchmark("placement played: cycles", cycles),
    Benchmark("placement played: places", places),
)
