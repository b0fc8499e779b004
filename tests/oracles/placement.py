"""Placement again: the judge and a brute force, written from the contract of the kind; imports
nothing of ours.

Problems and plans are JSON-like dictionaries. Letters are those of the contract: K draft tokens of
a round, L tokens that it yields, t a period, n the passes of a cycle, b, m and c the sequences, new
and cached tokens of a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

Json = dict[str, Any]
ROUNDING = 1e-12


class Infeasible(Exception):
    """What a plan violates."""


# ------------------------------------------------------------------ primitives


def named(rows: list[Json], name: str) -> Json:
    """The row of a name."""
    return next(row for row in rows if row["name"] == name)


def seconds(pieces: list[Json], b: float, m: float, c: float) -> float:
    """A pass over b sequences with m new and c cached tokens."""
    found: list[float] = [
        p["overhead_seconds"]
        + p["seconds_per_sequence"] * b
        + p["seconds_per_token"] * m
        + p["seconds_per_cached_token"] * c
        for p in pieces
    ]
    return max(found)


def values(trip: float | list[float]) -> list[float]:
    """The equally likely values of a trip."""
    return list(trip) if isinstance(trip, list) else [trip]


def acceptances(problem: Json, client: Json, drafter: str) -> list[float]:
    """Those of the positions 1 to `max_draft_tokens`, and of the token after the longest draft."""
    a, most = client["acceptance"][drafter], problem["max_draft_tokens"]
    if not isinstance(a, list):
        return [a] * (most + 1)
    return a if len(a) == most + 1 else [*a, a[-1]]


def tokens(problem: Json, e: Json) -> float:
    """L: 1 + a_1 + a_1 a_2 + ..."""
    total, product = 1.0, 1.0
    for k in range(e["K"]):
        product *= acceptances(problem, e["class"], e["drafter"]["name"])[k]
        total += product
    return total


def parallel(drafter: Json) -> bool:
    """Whether a drafter makes all tokens in one pass."""
    return bool(drafter.get("kind", "sequential") == "parallel")


def exceeds(amount: float, limit: float) -> bool:
    """Whether an amount is above its limit by more than the tolerance of the format."""
    return amount > limit + 1e-9 * max(abs(limit), abs(amount))


def memory_tokens(client: Json) -> int:
    """The context that memory must hold."""
    return int(client["max_context_tokens" if "max_context_tokens" in client else "context_tokens"])


# ------------------------------------------------------------------ one unit
#
# An entry is {"class", "q", "place", "drafter", "K", "overlap", "draft": {"pool", "h", "X", "K"}}:
# what a plan says of its clients with names replaced by rows; "draft" is what an entry must know of
# its draft group.


BLANK: Json = {"drafter": None, "K": 0, "overlap": False, "draft": None, "group": None}
"""An entry without drafts."""


def away(problem: Json, verifier: Json, e: Json, t: float) -> list[list[tuple[float, float]]]:
    """Steps 1 and 2: for every trip the chances and seconds away."""
    if e["place"] in ("none", "beside"):
        return [[(1.0, 0.0)]]
    if e["place"] == "pool":
        draft, d = e["draft"], e["drafter"]
        h, X, pieces = draft["h"], draft["X"], d["server"][draft["pool"]["name"]]
        if parallel(d):
            drafting = 2 * seconds(pieces, h, h * draft["K"], h * X)
        else:
            drafting = (e["K"] + 1) * seconds(pieces, h, h, h * X)
        return [
            [(1.0, R + drafting)]
            for R in values(draft["pool"]["round_trip_seconds"][verifier["name"]])
        ]
    U, D, ahead, p = device(problem, e)
    found = []
    for R in values(e["class"]["round_trip_seconds"][verifier["name"]]):
        if e["overlap"]:
            found.append([(p, R + U + max(0.0, ahead - (t + R + U))), (1 - p, R + U + D)])
        else:
            found.append([(1.0, R + U + D)])
    return found


def device(problem: Json, e: Json) -> tuple[float, float, float, float]:
    """Uplink, drafting, drafting ahead, and the chance that what is drafted ahead holds."""
    client, name, K = e["class"], e["drafter"]["name"], e["K"]
    one = client["device_seconds_per_token"][name]
    bits = problem.get("bits_per_draft_token", 17)
    U = K * bits / client["uplink_bits_per_second"] if "uplink_bits_per_second" in client else 0.0
    p = math.prod(acceptances(problem, client, name)[: K + 1])
    return (U, one, one, p) if parallel(e["drafter"]) else (U, K * one, (K + 1) * one, p)


def passes(problem: Json, verifier: Json, e: Json, t: float) -> float:
    """Step 3: n(t)."""
    by_trip = [
        sum(chance * math.ceil(a / t * (1 - ROUNDING)) for chance, a in one)
        for one in away(problem, verifier, e, t)
    ]
    return 1 + sum(by_trip) / len(by_trip)


def mean_away(problem: Json, verifier: Json, e: Json, t: float) -> float:
    """The mean over trips, hit and miss."""
    by_trip = [sum(chance * a for chance, a in one) for one in away(problem, verifier, e, t)]
    return sum(by_trip) / len(by_trip)


def busy(
    verifier: Json, beside: Json | None, entries: list[Json], joining: list[float]
) -> tuple[float, float]:
    """Step 3: B and b with so many clients of every entry in a pass."""
    b = sum(joining)
    m = sum(x * (e["K"] + 1) for x, e in zip(joining, entries, strict=True))
    c = sum(x * e["class"]["context_tokens"] for x, e in zip(joining, entries, strict=True))
    total = seconds(verifier["passes"], b, m, c)
    if beside is not None:
        drafter, K = beside["drafter"], beside["K"]
        pieces = drafter["beside"][verifier["name"]]
        total += seconds(pieces, b, b * K, c) if parallel(drafter) else K * seconds(pieces, b, b, c)
    return total / (1 - verifier.get("reserved_share", 0.0)), b


def unit(
    problem: Json, verifier: Json, beside: Json | None, entries: list[Json]
) -> tuple[list[float], float]:
    """Steps 3 to 6 and 9: rates of the entries and watts of one unit. It raises `Infeasible` where
    memory or a least rate is violated.
    """
    check_memory(verifier, beside, entries)
    P = [busy(verifier, beside, [e], [1.0])[0] for e in entries]
    A = [mean_away(problem, verifier, e, p) for e, p in zip(entries, P, strict=True)]
    light = []
    for i in range(len(entries)):
        wait = 0.0
        for j, f in enumerate(entries):
            wait += (f["q"] - (1 if i == j else 0)) * P[j] ** 2 / (A[j] + P[j])
        light.append(A[i] + P[i] + wait / 2)
    load = sum(e["q"] * p / one for e, p, one in zip(entries, P, light, strict=True))
    cycles, periods, share = [one * max(1.0, load) for one in light], P, min(1.0, load)
    if load > 1 + ROUNDING:
        n = [1.0] * len(entries)
        while True:
            t, b = busy(
                verifier, beside, entries, [e["q"] / x for e, x in zip(entries, n, strict=True)]
            )
            later = [passes(problem, verifier, e, t) for e in entries]
            if b < 1 - ROUNDING or later == n:
                break
            n = later
        if b >= 1 - ROUNDING:
            cycles, periods, share = [x * t for x in n], [t] * len(entries), 1.0
    rates = [tokens(problem, e) / one for e, one in zip(entries, cycles, strict=True)]
    for e, rate in zip(entries, rates, strict=True):
        if exceeds(e["class"].get("min_tokens_per_second", 0.0), rate):
            raise Infeasible(f"rate of {e['class']['name']}: {rate}")
    watts = verifier.get("idle_watts", 0.0)
    watts += (verifier.get("busy_watts", watts) - watts) * share
    for e, cycle, t in zip(entries, cycles, periods, strict=True):
        if e["place"] == "device":
            watts += (
                e["q"]
                * e["class"].get("device_watts", 0.0)
                * drafting(problem, verifier, e, t)
                / cycle
            )
    return rates, watts


def drafting(problem: Json, verifier: Json, e: Json, t: float) -> float:
    """Step 9: seconds of drafting per round on a device."""
    U, D, ahead, p = device(problem, e)
    if not e["overlap"]:
        return D
    trips = values(e["class"]["round_trip_seconds"][verifier["name"]])
    return sum(p * ahead + (1 - p) * (min(ahead, t + R + U) + D) for R in trips) / len(trips)


def check_memory(verifier: Json, beside: Json | None, entries: list[Json]) -> None:
    """Step 7 for a unit of a verifier."""
    weights, kv = verifier["weights_bytes"], verifier["kv_bytes_per_token"]
    if beside is not None:
        weights += beside["drafter"]["weights_bytes"]
        kv += beside["drafter"]["kv_bytes_per_token"]
    held = sum(e["q"] * (memory_tokens(e["class"]) + e["K"] + 1) for e in entries)
    if exceeds(weights + kv * held, verifier["memory_bytes"]):
        raise Infeasible(f"memory of {verifier['name']}")


def check_draft_memory(pool: Json, drafter: Json, h: int, longest: int) -> None:
    """Step 7 for a draft unit; `longest` is the largest context and draft of its clients."""
    if exceeds(
        drafter["weights_bytes"] + drafter["kv_bytes_per_token"] * h * longest, pool["memory_bytes"]
    ):
        raise Infeasible(f"memory of {pool['name']}")


# ------------------------------------------------------------------ whole plans


def need(condition: bool, reason: str) -> None:
    """Refuse what is not a plan of the problem."""
    if not condition:
        raise Infeasible(reason)


def resolved(problem: Json, plan: Json) -> list[tuple[Json, Json, Json | None, list[Json]]]:
    """Every group with its verifier, drafter beside and entries; refuse places that are not
    available.
    """
    found: list[tuple[Json, Json, Json | None, list[Json]]] = []
    most = problem["max_draft_tokens"]
    for group in plan["groups"]:
        verifier = named(problem["verifiers"], group["verifier"])
        beside = None
        if group.get("beside") is not None:
            drafter, K = (
                named(problem["drafters"], group["beside"]["drafter"]),
                group["beside"]["draft_tokens"],
            )
            need(verifier["name"] in drafter.get("beside", {}), "this drafter may not run beside")
            need(1 <= K <= most, "draft length")
            beside = {"drafter": drafter, "K": K}
        need(group["units"] >= 1 and len(group["clients"]) >= 1, "an empty group")
        entries = []
        for one in group["clients"]:
            client, place = named(problem["classes"], one["class"]), one["place"]
            need(one["per_unit"] >= 1, "an empty entry")
            need(
                (place == "beside") == (beside is not None),
                "beside is for all clients of a unit or none",
            )
            e: Json = BLANK | {"class": client, "q": one["per_unit"], "place": place}
            if beside is not None:
                e |= beside
            if place == "device":
                e |= {
                    "drafter": named(problem["drafters"], one["drafter"]),
                    "K": one["draft_tokens"],
                }
                e["overlap"] = one.get("overlap", False)
                need(
                    one["drafter"] in client.get("device_seconds_per_token", {}),
                    "no drafter on this device",
                )
                need(
                    verifier["name"] in client.get("round_trip_seconds", {}),
                    "no trip from this device",
                )
                need(problem.get("overlap", True) or not e["overlap"], "no overlap")
            if place == "pool":
                row = plan["draft_groups"][one["draft_group"]]
                pool = named(problem["draft_pools"], row["pool"])
                e |= {
                    "drafter": named(problem["drafters"], row["drafter"]),
                    "K": one["draft_tokens"],
                }
                e |= {"group": one["draft_group"], "draft": {"pool": pool, "h": row["per_unit"]}}
                need(
                    pool["name"] in e["drafter"].get("server", {}),
                    "this drafter may not run in this pool",
                )
                need(verifier["name"] in pool["round_trip_seconds"], "no trip from this pool")
            if place != "none":
                need(e["drafter"]["name"] in client["acceptance"], "no acceptance")
                need(1 <= e["K"] <= most, "draft length")
            entries.append(e)
        found.append((group, verifier, beside, entries))
    return found


def evaluate(problem: Json, plan: Json) -> Json:
    """Objective and terms of a plan; raises `Infeasible` with the reason."""
    groups = resolved(problem, plan)
    draft_groups = plan.get("draft_groups", [])
    for i, row in enumerate(draft_groups):
        need(row["units"] >= 1 and row["per_unit"] >= 1, "an empty draft group")
        mine = [(g["units"], e) for g, _, _, entries in groups for e in entries if e["group"] == i]
        need(len(mine) >= 1, "a draft group without clients")
        share = math.ceil(sum(n * e["q"] for n, e in mine) / row["units"])
        need(row["per_unit"] == share, f"draft_units: {share} clients on a unit of a draft group")
        X, K = max(e["class"]["context_tokens"] for _, e in mine), max(e["K"] for _, e in mine)
        for _, e in mine:
            e["draft"] |= {"X": X, "K": K}
        longest = max(memory_tokens(e["class"]) + e["K"] for _, e in mine)
        check_draft_memory(
            mine[0][1]["draft"]["pool"], mine[0][1]["drafter"], row["per_unit"], longest
        )
    for pool in problem.get("draft_pools", []):
        used = sum(row["units"] for row in draft_groups if row["pool"] == pool["name"])
        need(used <= pool["units"], f"draft_units: {pool['name']}")
    for verifier in problem["verifiers"]:
        used = sum(g["units"] for g in plan["groups"] if g["verifier"] == verifier["name"])
        need(used <= verifier["units"], f"units: {verifier['name']}")

    price = watts = total = goodput = utility = 0.0
    terms: Json = {"classes": {c["name"]: [] for c in problem["classes"]}}
    placed = dict.fromkeys(terms["classes"], 0)
    for group, verifier, beside, entries in groups:
        n, (rates, power) = group["units"], unit(problem, verifier, beside, entries)
        price += n * verifier.get("price_per_second", 0.0)
        watts += n * power
        for e, rate in zip(entries, rates, strict=True):
            clients, weight = n * e["q"], e["class"].get("weight", 1.0)
            placed[e["class"]["name"]] += clients
            total += clients * rate
            goodput += clients * weight * rate
            utility += clients * weight * math.log(rate)
            terms["classes"][e["class"]["name"]].append(
                {
                    "place": e["place"],
                    "verifier": verifier["name"],
                    "drafter": e["drafter"] and e["drafter"]["name"],
                    "draft_tokens": e["K"],
                    "overlap": e["overlap"],
                    "clients": clients,
                    "tokens_per_second": rate,
                }
            )
    for row in draft_groups:
        pool = named(problem["draft_pools"], row["pool"])
        price += row["units"] * pool.get("price_per_second", 0.0)
        watts += row["units"] * pool.get("busy_watts", 0.0)
    carried = min(placed[c["name"]] / c["clients"] for c in problem["classes"])
    if problem["objective"] != "capacity":
        for c in problem["classes"]:
            need(
                placed[c["name"]] == c["clients"],
                f"clients of {c['name']}: {placed[c['name']]} placed",
            )
    terms |= {
        "price": price,
        "watts": watts,
        "joules_per_token": watts / total if total > 0 else None,
    }
    objective = {
        "goodput": goodput,
        "fair": utility,
        "capacity": carried,
        "cost": price,
        "energy": watts,
    }
    return {"objective": objective[problem["objective"]], "terms": terms}


# ------------------------------------------------------------------ brute force


def optimum(problem: Json) -> tuple[float, Json] | None:
    """The best objective of all plans of a tiny problem and a plan that has it; None if there is no
    plan.

    All patterns of a unit are listed for every choice of draft groups. Of two patterns of one
    verifier that serve as many clients of every class and load every draft group alike only the
    better one is kept.
    """
    best: tuple[float, Json] | None = None
    for choice in draft_choices(problem):
        tables = [table(problem, verifier, choice) for verifier in problem["verifiers"]]
        for plan in combined(problem, tables, choice):
            objective = evaluate(problem, plan)["objective"]
            if best is None or better(problem, objective, best[0]):
                best = objective, plan
    return best


def better(problem: Json, one: float, other: float) -> bool:
    """Whether an objective is better than another."""
    return one < other if problem["objective"] in ("cost", "energy") else one > other


def draft_choices(problem: Json) -> Iterator[tuple[Json, ...]]:
    """Every set of draft groups of different nature, with what they claim of their clients: X and
    the largest K.

    Two groups of one nature and one size h are as good as one of as many units: c1 / n1 and c2 / n2
    are over h - 1 and up to h, and so is (c1 + c2) / (n1 + n2).
    """
    natures = []
    for pool in problem.get("draft_pools", []):
        for d in problem["drafters"]:
            able = [c for c in problem["classes"] if d["name"] in c["acceptance"]]
            if pool["name"] not in d.get("server", {}) or not able:
                continue
            least = min(memory_tokens(c) for c in able) + 1
            most = sum(c["clients"] for c in able)
            if problem["objective"] == "capacity":
                most = sum(
                    math.floor(v["units"] * v["memory_bytes"] / v["kv_bytes_per_token"] / least)
                    for v in problem["verifiers"]
                )
            room = pool["memory_bytes"] * (1 + 2e-9) - d["weights_bytes"]
            while most and d["kv_bytes_per_token"] * most * least > room:
                most -= 1
            if room < 0:
                continue
            if most > 40:
                raise ValueError("too many clients of a draft unit for a brute force")
            for h in range(1, most + 1):
                for X in sorted({c["context_tokens"] for c in able}):
                    for K in range(1, problem["max_draft_tokens"] + 1) if parallel(d) else (None,):
                        natures.append({"pool": pool, "drafter": d, "h": h, "X": X, "K": K})
    units = sum(pool["units"] for pool in problem.get("draft_pools", []))
    for count in range(units + 1):
        yield from combinations(natures, count)


def options(problem: Json, verifier: Json, choice: tuple[Json, ...]) -> list[list[Json]]:
    """For every drafter and draft length beside, and for none, what a client of the unit can do."""
    lengths = range(1, problem["max_draft_tokens"] + 1)
    apart: list[Json] = []
    found = [apart]
    for c in problem["classes"]:
        apart.append(BLANK | {"class": c, "place": "none"})
        for d in problem["drafters"]:
            on_device = d["name"] in c.get("device_seconds_per_token", {})
            if (
                d["name"] in c["acceptance"]
                and on_device
                and verifier["name"] in c.get("round_trip_seconds", {})
            ):
                for K in lengths:
                    for overlap in (False, True) if problem.get("overlap", True) else (False,):
                        apart.append(
                            BLANK
                            | {
                                "class": c,
                                "place": "device",
                                "drafter": d,
                                "K": K,
                                "overlap": overlap,
                            }
                        )
        for i, draft in enumerate(choice):
            d = draft["drafter"]
            if (
                d["name"] in c["acceptance"]
                and verifier["name"] in draft["pool"]["round_trip_seconds"]
            ):
                for K in lengths:
                    e = BLANK | {
                        "class": c,
                        "place": "pool",
                        "drafter": d,
                        "K": K,
                        "draft": draft,
                        "group": i,
                    }
                    if c["context_tokens"] <= draft["X"] and (
                        draft["K"] is None or draft["K"] >= K
                    ):
                        apart.append(e)
    for d in problem["drafters"]:
        if verifier["name"] in d.get("beside", {}):
            able = [c for c in problem["classes"] if d["name"] in c["acceptance"]]
            found += [
                [BLANK | {"class": c, "place": "beside", "drafter": d, "K": K} for c in able]
                for K in lengths
            ]
    return found


# what draft groups see of their clients: how many, the largest context and draft
Use = tuple[tuple[int, int, int], ...]
# clients of every class, and the use of draft groups
Key = tuple[tuple[int, ...], Use]


def table(
    problem: Json, verifier: Json, choice: tuple[Json, ...]
) -> dict[Key, tuple[float, list[Json]]]:
    """Of the patterns of one unit the best of every key: its part of the objective, and its
    entries.
    """
    found: dict[Key, tuple[float, list[Json]]] = {}
    for offered in options(problem, verifier, choice):
        for entries in patterns(problem, verifier, offered):
            first = entries[0]
            beside = (
                {"drafter": first["drafter"], "K": first["K"]}
                if first["place"] == "beside"
                else None
            )
            try:
                for e in entries:
                    if e["place"] == "pool":
                        longest = memory_tokens(e["class"]) + e["K"]
                        check_draft_memory(
                            e["draft"]["pool"], e["drafter"], e["draft"]["h"], longest
                        )
                rates, watts = unit(problem, verifier, beside, entries)
            except Infeasible:
                continue
            weights = [e["q"] * e["class"].get("weight", 1.0) for e in entries]
            part = {
                "goodput": sum(w * r for w, r in zip(weights, rates, strict=True)),
                "fair": sum(w * math.log(r) for w, r in zip(weights, rates, strict=True)),
                "capacity": 0.0,
                "cost": verifier.get("price_per_second", 0.0),
                "energy": watts,
            }[problem["objective"]]
            key = key_of(problem, entries, len(choice))
            if key not in found or better(problem, part, found[key][0]):
                found[key] = part, entries
    return found


def patterns(problem: Json, verifier: Json, offered: list[Json]) -> Iterator[list[Json]]:
    """Every list of entries with different options that memory holds: q clients of each."""

    def further(start: int, left: dict[str, int], entries: list[Json]) -> Iterator[list[Json]]:
        for i in range(start, len(offered)):
            name = offered[i]["class"]["name"]
            for q in range(1, left[name] + 1):
                more = [*entries, offered[i] | {"q": q}]
                try:
                    check_memory(verifier, None, more)
                except Infeasible:
                    break
                yield more
                yield from further(i + 1, left | {name: left[name] - q}, more)

    free = problem["objective"] == "capacity"
    return further(0, {c["name"]: 99 if free else c["clients"] for c in problem["classes"]}, [])


def key_of(problem: Json, entries: list[Json], groups: int) -> Key:
    """Clients by class, and of every draft group how many clients and the largest context and
    draft.
    """
    counts = tuple(sum(e["q"] for e in entries if e["class"] is c) for c in problem["classes"])
    use = []
    for i in range(groups):
        mine = [e for e in entries if e["group"] == i]
        use.append(
            (
                sum(e["q"] for e in mine),
                max((e["class"]["context_tokens"] for e in mine), default=-1),
                max((e["K"] for e in mine), default=0),
            )
        )
    return counts, tuple(use)


def combined(
    problem: Json, tables: list[dict[Key, tuple[float, list[Json]]]], choice: tuple[Json, ...]
) -> Iterator[Json]:
    """The best plan of every way to share clients and draft units among the units of all
    verifiers.
    """
    free = problem["objective"] == "capacity"
    nobody = (0,) * len(problem["classes"])
    clients = [c["clients"] for c in problem["classes"]]
    states: dict[Key, tuple[float, list[tuple[str, list[Json]]]]] = {
        (nobody, ((0, -1, 0),) * len(choice)): (0.0, [])
    }
    for verifier, one in zip(problem["verifiers"], tables, strict=True):
        for _ in range(verifier["units"]):
            after = dict(states)
            for (counts, use), (value, units) in states.items():
                for (more, uses), (part, entries) in one.items():
                    both = tuple(map(sum, zip(counts, more, strict=True)))
                    if not free and any(x > most for x, most in zip(both, clients, strict=True)):
                        continue
                    joint = tuple(
                        (u[0] + v[0], max(u[1], v[1]), max(u[2], v[2]))
                        for u, v in zip(use, uses, strict=True)
                    )
                    if (both, joint) not in after or better(
                        problem, value + part, after[both, joint][0]
                    ):
                        after[both, joint] = value + part, [*units, (verifier["name"], entries)]
            states = after
    ends = [
        (units, use)
        for (counts, use), (_, units) in states.items()
        if free or list(counts) == clients
    ]
    for units, use in ends:
        if all(u[1] == d["X"] and d["K"] in (None, u[2]) for u, d in zip(use, choice, strict=True)):
            needed = [-(-u[0] // d["h"]) for u, d in zip(use, choice, strict=True)]
            if any(-(-u[0] // n) != d["h"] for u, n, d in zip(use, needed, choice, strict=True)):
                continue  # no number of units has h clients each, and more units have fewer each
            within = (
                sum(n for n, d in zip(needed, choice, strict=True) if d["pool"] is pool)
                <= pool["units"]
                for pool in problem.get("draft_pools", [])
            )
            if all(within):
                yield written(units, choice, needed)


def written(
    units: list[tuple[str, list[Json]]], choice: tuple[Json, ...], needed: list[int]
) -> Json:
    """The plan as JSON; units that are alike are one group."""
    groups: list[Json] = []
    for verifier, entries in units:
        clients = []
        for e in entries:
            one = {"class": e["class"]["name"], "per_unit": e["q"], "place": e["place"]}
            if e["place"] == "device":
                one |= {
                    "drafter": e["drafter"]["name"],
                    "draft_tokens": e["K"],
                    "overlap": e["overlap"],
                }
            if e["place"] == "pool":
                one |= {"draft_tokens": e["K"], "draft_group": e["group"]}
            clients.append(one)
        first = entries[0]
        beside = None
        if first["place"] == "beside":
            beside = {"drafter": first["drafter"]["name"], "draft_tokens": first["K"]}
        same = [
            g
            for g in groups
            if (g["verifier"], g["beside"], g["clients"]) == (verifier, beside, clients)
        ]
        if same:
            same[0]["units"] += 1
        else:
            groups.append({"verifier": verifier, "units": 1, "beside": beside, "clients": clients})
    draft_groups = [
        {"pool": d["pool"]["name"], "drafter": d["drafter"]["name"], "units": n, "per_unit": d["h"]}
        for d, n in zip(choice, needed, strict=True)
    ]
    return {"groups": groups, "draft_groups": draft_groups}
