"""Small instances of `placement` for the conformance suite."""

from __future__ import annotations

from typing import Any

from specopt import PlacementProblem, Problem

TICK = 1.0 / 128.0
"""Every time is a multiple of it, so that times away and least rates meet periods exactly."""

Json = dict[str, Any]


def passes(
    overhead: float = 0.0, sequence: float = 0.0, token: float = 0.0, cached: float = 0.0
) -> list[Json]:
    """A pass of one piece, in seconds."""
    return [
        {
            "overhead_seconds": overhead,
            "seconds_per_sequence": sequence,
            "seconds_per_token": token,
            "seconds_per_cached_token": cached,
        }
    ]


def one_of_each(
    objective: str,
    max_draft_tokens: int,
    *,
    verifier: Json,
    drafter: Json,
    classes: list[Json],
    pool: Json | None = None,
    **fields: Any,
) -> PlacementProblem:
    """A problem with a verifier "v", a drafter "d", a pool "p" if one is given, and classes, each
    "c" unless it has another name.
    """
    size = {"weights_bytes": 0.0, "kv_bytes_per_token": 1.0}
    return PlacementProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": PlacementProblem.kind,
            "objective": objective,
            "max_draft_tokens": max_draft_tokens,
            "verifiers": [{"name": "v", "units": 1, "memory_bytes": 1e9, **size, **verifier}],
            "drafters": [{"name": "d", **size, **drafter}],
            "draft_pools": [] if pool is None else [{"name": "p", **pool}],
            "classes": [{"name": "c", **one} for one in classes],
            **fields,
        }
    )


def _passes(overhead: float, sequence: float = 0.0, token: float = 0.0) -> list[Json]:
    return passes(overhead * TICK, sequence * TICK, token * TICK)


def _verifier(name: str = "verifier", units: int = 1, **changed: Any) -> Json:
    return {
        "name": name,
        "units": units,
        "memory_bytes": 100.0,
        "weights_bytes": 10.0,
        "kv_bytes_per_token": 1.0,
        "passes": _passes(4, 1, 1),
        "price_per_second": 2.0,
        "idle_watts": 2.0,
        "busy_watts": 5.0,
        **changed,
    }


def _drafter(name: str = "drafter", **changed: Any) -> Json:
    return {
        "name": name,
        "weights_bytes": 1.0,
        "kv_bytes_per_token": 0.5,
        "beside": {"verifier": _passes(1)},
        **changed,
    }


def _class(name: str = "chat", clients: int = 3, **changed: Any) -> Json:
    return {
        "name": name,
        "clients": clients,
        "context_tokens": 4,
        "acceptance": {"drafter": 0.75},
        "device_seconds_per_token": {"drafter": TICK},
        "device_watts": 1.0,
        "round_trip_seconds": {"verifier": [2 * TICK, 6 * TICK]},
        "min_tokens_per_second": 4.0,
        **changed,
    }


def _problem(objective: str = "goodput", **changed: Any) -> Problem:
    return PlacementProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": PlacementProblem.kind,
            "objective": objective,
            "max_draft_tokens": 2,
            "verifiers": [_verifier()],
            "drafters": [_drafter()],
            "classes": [_class()],
            **changed,
        }
    )


def _instances() -> dict[str, Problem]:
    """Every objective, ties, a pool, heads, exact memory, and problems without a plan, each of
    another reason.
    """
    needs = 4 + 1  # tokens of a client without drafts
    server: Json = {"server": {"pool": _passes(1)}, "beside": {}}
    pool = {
        "name": "pool",
        "units": 2,
        "memory_bytes": 20.0,
        "round_trip_seconds": {"verifier": TICK},
        "price_per_second": 0.5,
        "busy_watts": 1.0,
    }
    return {
        "goodput": _problem(
            verifiers=[_verifier(units=2)],
            classes=[_class(), _class("code", 1, weight=2.0, acceptance={"drafter": [0.9, 0.5]})],
        ),
        "fair": _problem(
            "fair", classes=[_class(), _class("far", 1, round_trip_seconds={"verifier": 0.5})]
        ),
        "capacity": _problem("capacity", verifiers=[_verifier(memory_bytes=40.0)]),
        "cost": _problem(
            "cost", verifiers=[_verifier(units=2), _verifier("small", price_per_second=1.0)]
        ),
        "energy": _problem("energy", verifiers=[_verifier(units=2)]),
        "one client": _problem(classes=[_class(clients=1)]),
        "ties": _problem(
            verifiers=[_verifier(), _verifier("twin")],
            drafters=[_drafter(), _drafter("drafter again")],
            classes=[_class(clients=2, acceptance={"drafter": 0.5, "drafter again": 0.5})],
        ),
        "pool": _problem(
            drafters=[_drafter(**server)],
            draft_pools=[pool],
            classes=[_class(device_seconds_per_token={})],
        ),
        "parallel drafter": _problem(
            "fair",
            drafters=[_drafter(kind="parallel")],
            verifiers=[_verifier(reserved_share=0.25, idle_watts=0.0)],
        ),
        "no drafters": _problem(
            "fair", drafters=[], classes=[_class(acceptance={}, device_seconds_per_token={})]
        ),
        "no drafting ahead": _problem(
            overlap=False,
            bits_per_draft_token=1.0,
            classes=[_class(uplink_bits_per_second=2.0 / TICK)],
        ),
        "memory for exactly 3": _problem(verifiers=[_verifier(memory_bytes=10.0 + 3 * needs)]),
        "rate that just fits": _problem(
            drafters=[],
            classes=[
                _class(
                    acceptance={},
                    device_seconds_per_token={},
                    min_tokens_per_second=1.0 / (10 * TICK),
                )
            ],
        ),
        "infeasible: rate": _problem(
            classes=[_class(), _class("fast", 1, min_tokens_per_second=1000.0)]
        ),
        "infeasible: memory": _problem(verifiers=[_verifier(memory_bytes=9.0 + needs)]),
        "infeasible: units": _problem("fair", verifiers=[_verifier(memory_bytes=10.0 + 2 * needs)]),
    }


INSTANCES = _instances()
