"""Hypothesis strategies for tiny `placement` problems and for their plans.

Ties are common, and capacity limits and minimum rates often hold with equality.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from specopt.models.pass_time.pieces import PIECE, PassPieces
from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import PlacementProblem

OBJECTIVES = ("goodput", "fair", "capacity", "cost", "energy")
TICK = 2.0**-8
"""Unit of time in the problems, in seconds.

Times are multiples of this unit or of a fraction of this unit. As a result, the time that a client
spends away from the verifier is often an exact multiple of the verifier's period. At such times,
the number of passes changes.
"""
PIECES = ((8, 0, 0, 0), (0, 2, 0, 0), (0, 1, 1, 0), (4, 1, 0, 1), (2, 0, 1, 0), (1, 2, 1, 1))
RATES = st.sampled_from([1.0, 0.75, 0.5, 0.0]) | st.floats(0.0, 1.0, allow_subnormal=False)
WAYS = st.integers(0, 8).map(lambda ticks: ticks * TICK)
TRIPS = st.just(0.0) | WAYS | st.lists(WAYS, min_size=1, max_size=3)


def _passes(*units: float) -> st.SearchStrategy[list[dict[str, float]]]:
    """Return a strategy for models of forward-pass times.

    The time is the maximum of one or two linear functions. Each function is scaled by one of the
    numbers of ticks in `units`.
    """
    row = st.tuples(st.sampled_from(units), st.sampled_from(PIECES)).map(
        lambda drawn: {
            name: drawn[0] * x * TICK / (16 if name == PIECE[3] else 1)
            for name, x in zip(PIECE, drawn[1], strict=True)
        }
    )
    return st.lists(row, min_size=1, max_size=2)


def _some(names: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for dictionaries whose keys are all or some of the names."""
    return st.fixed_dictionaries(dict.fromkeys(names, values)) | st.fixed_dictionaries(
        {}, optional=dict.fromkeys(names, values)
    )


@st.composite
def problems(
    draw: st.DrawFn, objective: str | None = None, max_clients: int = 4
) -> PlacementProblem:
    """Draw a problem with at most three classes of clients and at most two draft tokens.

    In many problems, a whole number of clients fills the memory exactly.
    """
    sought = objective or draw(st.sampled_from(OBJECTIVES))
    longest = draw(st.integers(1, 2))
    sizes = [draw(st.integers(1, max_clients))]
    while len(sizes) < 3 and sum(sizes) < max_clients and draw(st.booleans()):
        sizes.append(draw(st.integers(1, max_clients - sum(sizes))))
    small = st.integers(0, 2).map(float)
    half = st.sampled_from([0.0, 0.0, 0.5])
    names = ["verifier 0", "verifier 1"][: draw(st.integers(1, 2))]
    models = ["drafter 0", "drafter 1"][: draw(st.integers(1, 2))]
    pools = ["pool"][: draw(st.integers(0, 1))]
    verifiers: list[dict[str, Any]] = [
        {
            "name": name,
            "units": draw(st.integers(1, 2)),
            "weights_bytes": draw(small),
            "kv_bytes_per_token": 1.0,
            "passes": draw(_passes(1.0)),
            "reserved_share": draw(half),
            "price_per_second": draw(small) + 1.0,
            "idle_watts": draw(small),
            "busy_watts": draw(small) + 2.0,
        }
        for name in names
    ]
    drafters = [
        {
            "name": name,
            "kind": draw(st.sampled_from(["sequential", "parallel"])),
            "weights_bytes": draw(small),
            "kv_bytes_per_token": draw(st.sampled_from([0.0, 0.5, 0.5, 1.0])),
            "beside": draw(_some(names, _passes(0.0, 0.125, 0.25))),
            "server": draw(_some(pools, _passes(0.0, 0.125, 0.25))),
        }
        for name in models
    ]
    contexts = draw(st.just([0]) | st.lists(st.integers(3, 6), min_size=1, max_size=2))
    positions = st.lists(RATES, min_size=longest, max_size=longest + 1)
    classes, needs = [], list[int]()
    for i, size in enumerate(sizes):
        context = draw(st.sampled_from(contexts))
        needs.append(context + draw(st.integers(0, 2)) + 1)
        # number of clients for which the first verifier just reaches the minimum rate without
        # drafts
        fitting = draw(st.integers(1, 3))
        one = PassPieces.parse(verifiers[0]["passes"], "passes").at(
            fitting, fitting, fitting * context
        )
        low = 0.1 if sought in OBJECTIVES[2:] else 0.0
        share = draw(st.sampled_from([1.0, 0.5, low, low]))
        classes.append(
            {
                "name": f"class {i}",
                "clients": size,
                "context_tokens": context,
                "max_context_tokens": needs[-1] - 1,
                "weight": draw(st.sampled_from([1.0, 0.5, 3.0])),
                "min_tokens_per_second": share / one,
                "acceptance": draw(_some(models, RATES | positions)),
                "device_watts": draw(small),
                "device_seconds_per_token": draw(
                    _some(models, small.map(lambda ticks: ticks * TICK))
                ),
                "round_trip_seconds": draw(_some(names, TRIPS)),
                **draw(st.sampled_from([{}, {"uplink_bits_per_second": 4.0 / TICK}])),
            }
        )
    for verifier in verifiers:
        room = draw(st.integers(1, max_clients)) * (
            draw(st.sampled_from(needs)) + draw(st.integers(0, longest))
        )
        verifier["memory_bytes"] = verifier["weights_bytes"] + min(
            room + draw(small), (max_clients + 1) * min(needs)
        )
    draft_pools = [
        {
            "name": name,
            "units": draw(st.integers(1, 3 - len(models))),
            "price_per_second": draw(small),
            "memory_bytes": 2.0 + draw(st.integers(1, 3)) * max(needs) / 2,
            "busy_watts": draw(small),
            "round_trip_seconds": draw(_some(names, TRIPS)),
        }
        for name in pools
    ]
    return PlacementProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": PlacementProblem.kind,
            "objective": sought,
            "max_draft_tokens": longest,
            "bits_per_draft_token": 1.0,
            "overlap": draw(st.booleans()),
            "verifiers": verifiers,
            "drafters": drafters,
            "classes": classes,
            "draft_pools": draft_pools,
        }
    )


@st.composite
def plans(draw: st.DrawFn, problem: PlacementProblem) -> PlacementPlan:
    """Draw a plan that distributes clients in turn over the units of all verifiers.

    The plan respects the memory, but may violate minimum rates and the numbers of clients.
    """
    data = problem.to_dict()
    length = st.integers(1, data["max_draft_tokens"])
    drafters = data["drafters"]
    pools = data.get("draft_pools")
    draft = None
    if pools and draw(st.booleans()):
        draft = {
            "pool": pools[0]["name"],
            "drafter": draw(st.sampled_from(drafters))["name"],
            "units": draw(st.integers(1, pools[0]["units"])),
        }
    groups = []
    left = {one["name"]: one["clients"] for one in data["classes"]}
    units = [one for one in data["verifiers"] for _ in range(one["units"])]
    for at, unit in enumerate(units):
        name = unit["name"]
        able = [one for one in drafters if name in one.get("beside", {})]
        own: dict[str, Any] = draw(st.sampled_from([{}, *able]))
        beside = {"drafter": own["name"], "draft_tokens": draw(length)} if own else None
        room = unit["memory_bytes"] - unit["weights_bytes"] - own.get("weights_bytes", 0.0)
        entries = []
        for client in data["classes"]:
            rates = client["acceptance"]
            offered: list[dict[str, Any]] = [{"place": "none"}]
            if beside is not None:
                offered = [{"place": "beside"}] if beside["drafter"] in rates else []
            elif name in client.get("round_trip_seconds", {}):
                ahead = draw(st.booleans()) and problem.overlap
                offered += [
                    {
                        "place": "device",
                        "drafter": one,
                        "draft_tokens": draw(length),
                        "overlap": ahead,
                    }
                    for one in client.get("device_seconds_per_token", {})
                ]
            if draft is not None and beside is None and draft["drafter"] in rates:
                offered.append({"place": "pool", "draft_group": 0, "draft_tokens": draw(length)})
            if not offered:
                continue
            chosen = draw(st.sampled_from(offered))
            tokens = client["max_context_tokens"] + (beside or chosen).get("draft_tokens", 0) + 1
            need = tokens * (unit["kv_bytes_per_token"] + own.get("kv_bytes_per_token", 0.0))
            most = min(left[client["name"]], max(0, int(room / need)))
            is_last = at == len(units) - 1
            clients = most if is_last else draw(st.just(most) | st.integers(0, most))
            if clients:
                room -= clients * need
                left[client["name"]] -= clients
                entries.append({"class": client["name"], "per_unit": clients, **chosen})
        if entries:
            groups.append({"verifier": name, "units": 1, "beside": beside, "clients": entries})
    pooled = sum(
        one["per_unit"] for group in groups for one in group["clients"] if one["place"] == "pool"
    )
    if draft is not None:
        draft["per_unit"] = -(-pooled // draft["units"])
    return PlacementPlan.from_dict({"groups": groups, "draft_groups": [draft] if pooled else []})
