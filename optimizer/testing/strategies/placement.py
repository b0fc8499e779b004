"""Hypothesis strategies for placement: tiny problems whose times, limits and least rates often meet exactly."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from specopt.models.placement import PlacementPlan, PlacementProblem

OBJECTIVES = ("goodput", "fair", "capacity", "cost", "energy")
TICK = 2.0**-8
"""Every time is a multiple of it: periods divide times away, where the number of passes steps."""
ACCEPTANCES = st.one_of(st.sampled_from([1.0, 0.75, 0.5, 0.0]), st.floats(0.0, 1.0, allow_subnormal=False))


def _ticks(draw: st.DrawFn, *choices: int) -> float:
    return draw(st.sampled_from(choices)) * TICK


@st.composite
def _pieces(draw: st.DrawFn, positive: bool = False) -> list[dict[str, float]]:
    """One or two pieces; `positive`: every one takes time; others are a drafter's, mostly faster."""
    found = []
    unit = 1.0 if positive else draw(st.sampled_from([0.0, 0.125, 0.25]))
    for _ in range(draw(st.integers(1, 2))):
        one = {
            "overhead_seconds": unit * _ticks(draw, 0, 1, 4, 8),
            "seconds_per_sequence": unit * _ticks(draw, 0, 0, 1, 2),
            "seconds_per_token": unit * _ticks(draw, 0, 0, 1),
            "seconds_per_cached_token": unit * _ticks(draw, 0, 0, 1) / 16,
        }
        if positive and not one["overhead_seconds"] + one["seconds_per_sequence"] + one["seconds_per_token"]:
            one["seconds_per_sequence"] = TICK
        found.append(one)
    return found


_WAYS = st.integers(0, 8).map(lambda ticks: ticks * TICK)
TRIPS = st.one_of(st.just(0.0), _WAYS, st.lists(_WAYS, min_size=1, max_size=3))


@st.composite
def _drafters(draw: st.DrawFn, most: int, verifiers: list[str], pools: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "name": f"drafter {i}", "kind": draw(st.sampled_from(["sequential", "parallel"])),
            "weights_bytes": float(draw(st.integers(0, 2))),
            "kv_bytes_per_token": draw(st.sampled_from([0.5, 1.0])),
            "beside": {name: draw(_pieces()) for name in verifiers if draw(st.integers(0, 3))},
            "server": {name: draw(_pieces()) for name in pools},
        }
        for i in range(draw(st.integers(1, most)))
    ]  # fmt: skip


def _least_rate(draw: st.DrawFn, verifier: dict[str, Any], context: int, needed: bool) -> float:
    """What a unit that serves some clients without drafts just reaches, or a part of it."""
    clients = draw(st.integers(1, 3))
    seconds = max(
        p["overhead_seconds"] + clients * (p["seconds_per_sequence"] + p["seconds_per_token"]
                                           + context * p["seconds_per_cached_token"])
        for p in verifier["passes"]
    )  # fmt: skip
    share = draw(st.sampled_from([1.0, 0.5, 0.125] if needed else [1.0, 0.5, 0.0, 0.0]))
    return share * (1.0 - verifier["reserved_share"]) / seconds


@st.composite
def problems(
    draw: st.DrawFn,
    objective: str | None = None,
    most_clients: int = 4,
    most_drafters: int = 2,
    most_verifiers: int = 2,
) -> PlacementProblem:
    """Problems with at most three classes and two draft tokens; memory holds few clients, often exactly k."""
    return PlacementProblem.from_dict(draw(data(objective, most_clients, most_drafters, most_verifiers)))


@st.composite
def data(
    draw: st.DrawFn, objective: str | None, most_clients: int, most_drafters: int, most_verifiers: int
) -> dict[str, Any]:
    """The problems in their JSON form."""
    sought = objective or draw(st.sampled_from(OBJECTIVES))
    all_needed = sought in ("capacity", "cost", "energy")
    sizes = [draw(st.integers(1, most_clients))]
    while len(sizes) < 3 and sum(sizes) < most_clients and draw(st.booleans()):
        sizes.append(draw(st.integers(1, most_clients - sum(sizes))))
    longest = draw(st.integers(1, 2))
    verifiers: list[dict[str, Any]] = [
        {
            "name": f"verifier {i}", "units": draw(st.integers(1, 2)), "weights_bytes": float(draw(st.integers(0, 8))),
            "kv_bytes_per_token": 1.0, "passes": draw(_pieces(positive=True)),
            "reserved_share": draw(st.sampled_from([0.0, 0.0, 0.5])),
            "price_per_second": float(draw(st.integers(sought == "cost", 3))),
            "idle_watts": float(draw(st.integers(0, 2))), "busy_watts": float(draw(st.integers(2, 5))),
        }
        for i in range(draw(st.integers(1, most_verifiers)))
    ]  # fmt: skip
    names = [verifier["name"] for verifier in verifiers]
    pools = ["pool"] if draw(st.booleans()) else []
    drafters = draw(_drafters(most_drafters, names, pools))
    contexts = draw(st.one_of(st.just([0]), st.lists(st.integers(3, 6), min_size=1, max_size=2)))
    positions = st.lists(ACCEPTANCES, min_size=longest, max_size=longest + 1)
    classes = []
    for i, size in enumerate(sizes):
        context = draw(st.sampled_from(contexts))
        able = [d["name"] for d in drafters if draw(st.integers(0, 3))]
        one = {
            "name": f"class {i}", "clients": size, "context_tokens": context,
            "max_context_tokens": context + draw(st.integers(0, 2)),
            "weight": draw(st.sampled_from([1.0, 1.0, 0.5, 3.0])),
            "min_tokens_per_second": _least_rate(draw, verifiers[0], context, all_needed),
            "acceptance": {name: draw(st.one_of(ACCEPTANCES, positions)) for name in able},
            "device_seconds_per_token": {name: _ticks(draw, 0, 1, 2) for name in able if draw(st.integers(0, 3))},
            "device_watts": float(draw(st.integers(0, 2))),
            "round_trip_seconds": {name: draw(TRIPS) for name in names if draw(st.integers(0, 3))},
        }  # fmt: skip
        if draw(st.booleans()):
            one["uplink_bits_per_second"] = 4 / TICK
        classes.append(one)
    needs = [one["max_context_tokens"] + 1 for one in classes]
    for verifier in verifiers:
        need = draw(st.sampled_from(needs)) + draw(st.integers(0, longest))
        room = draw(st.integers(1, most_clients)) * need + draw(st.sampled_from([0, 0, 1, 4]))
        verifier["memory_bytes"] = verifier["weights_bytes"] + min(room, (most_clients + 1) * min(needs))
    few = len(drafters) == 1 and len(sizes) == 1
    return {
        "format": "specopt/1", "kind": PlacementProblem.kind, "objective": sought, "max_draft_tokens": longest,
        "bits_per_draft_token": 1.0, "overlap": draw(st.booleans()), "verifiers": verifiers, "drafters": drafters,
        "classes": classes,
        "draft_pools": [
            {
                "name": name, "units": draw(st.integers(1, 2 if few else 1)),
                "memory_bytes": max(d["weights_bytes"] for d in drafters) + draw(st.integers(1, 3)) * max(needs) / 2,
                "round_trip_seconds": {verifier: draw(TRIPS) for verifier in names},
                "price_per_second": float(draw(st.integers(0, 2))), "busy_watts": float(draw(st.integers(0, 2))),
            }
            for name in pools
        ],
    }  # fmt: skip


@st.composite
def plans(draw: st.DrawFn, problem: PlacementProblem) -> PlacementPlan:
    """Clients dealt to the units of all verifiers in turn; memory, least rates and counts may be violated."""
    data = problem.to_dict()
    length = st.integers(1, data["max_draft_tokens"])
    drafters, pools = data["drafters"], data.get("draft_pools")
    draft = None
    if pools and draw(st.booleans()):
        draft = {"pool": pools[0]["name"], "drafter": draw(st.sampled_from(drafters))["name"],
                 "units": draw(st.integers(1, pools[0]["units"])), "per_unit": draw(st.integers(1, 2))}  # fmt: skip
    groups, left = [], {one["name"]: one["clients"] for one in data["classes"]}
    units = [one["name"] for one in data["verifiers"] for _ in range(one["units"])]
    for at, name in enumerate(units):
        able = [one["name"] for one in drafters if name in one.get("beside", {})]
        beside = {"drafter": draw(st.sampled_from(able)), "draft_tokens": draw(length)} if able else None
        beside = draw(st.sampled_from([None, beside]))
        entries = []
        for client in data["classes"]:
            rates = client["acceptance"]
            offered: list[dict[str, Any]] = [{"place": "none"}]
            if beside is not None:
                offered = [{"place": "beside"}] if beside["drafter"] in rates else []
            elif name in client.get("round_trip_seconds", {}):
                ahead = draw(st.booleans()) and problem.overlap
                offered += [
                    {"place": "device", "drafter": one, "draft_tokens": draw(length), "overlap": ahead}
                    for one in client.get("device_seconds_per_token", {})
                ]
            if draft is not None and beside is None and draft["drafter"] in rates:
                offered.append({"place": "pool", "draft_group": 0, "draft_tokens": draw(length)})
            rest = left[client["name"]]
            clients = rest if at == len(units) - 1 else draw(st.integers(0, rest))
            if clients and offered:
                left[client["name"]] = rest - clients
                entries.append({"class": client["name"], "per_unit": clients, **draw(st.sampled_from(offered))})
        if entries:
            groups.append({"verifier": name, "units": 1, "beside": beside, "clients": entries})
    used = any(one["place"] == "pool" for group in groups for one in group["clients"])
    return PlacementPlan.from_dict({"groups": groups, "draft_groups": [draft] if used else []})
