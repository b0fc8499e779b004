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


def passes_of(overhead: float, sequence: float = 0.0, token: float = 0.0) -> list[Json]:
    """Return the pieces of passes, in ticks."""
    return passes(overhead * TICK, sequence * TICK, token * TICK)


def verifier(name: str = "verifier", units: int = 1, **changed: Any) -> Json:
    """Return a verifier with some fields replaced."""
    return {
        "name": name,
        "units": units,
        "memory_bytes": 100.0,
        "weights_bytes": 10.0,
        "kv_bytes_per_token": 1.0,
        "passes": passes_of(4, 1, 1),
        "price_per_second": 2.0,
        "idle_watts": 2.0,
        "busy_watts": 5.0,
        **changed,
    }


def drafter(name: str = "drafter", **changed: Any) -> Json:
    """Return a drafter with some fields replaced."""
    return {
        "name": name,
        "weights_bytes": 1.0,
        "kv_bytes_per_token": 0.5,
        "beside": {"verifier": passes_of(1)},
        **changed,
    }


def client_class(name: str = "chat", clients: int = 3, **changed: Any) -> Json:
    """Return a class of clients with some fields replaced."""
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


def pool(**changed: Any) -> Json:
    """Return a pool of draft units with some fields replaced."""
    return {
        "name": "pool",
        "units": 2,
        "memory_bytes": 20.0,
        "round_trip_seconds": {"verifier": TICK},
        "price_per_second": 0.5,
        "busy_watts": 1.0,
        **changed,
    }


def problem_of(objective: str = "goodput", **changed: Any) -> PlacementProblem:
    """Return a problem of one verifier, drafter and class with some fields replaced."""
    return PlacementProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": PlacementProblem.kind,
            "objective": objective,
            "max_draft_tokens": 2,
            "verifiers": [verifier()],
            "drafters": [drafter()],
            "classes": [client_class()],
            **changed,
        }
    )


def _instances() -> dict[str, Problem]:
    """Every objective, ties, a pool, heads, exact memory, and problems without a plan, each of
    another reason.
    """
    needs = 4 + 1  # tokens of a client without drafts
    server: Json = {"server": {"pool": passes_of(1)}, "beside": {}}
    return {
        "goodput": problem_of(
            verifiers=[verifier(units=2)],
            classes=[
                client_class(),
                client_class("code", 1, weight=2.0, acceptance={"drafter": [0.9, 0.5]}),
            ],
        ),
        "fair": problem_of(
            "fair",
            classes=[client_class(), client_class("far", 1, round_trip_seconds={"verifier": 0.5})],
        ),
        "capacity": problem_of("capacity", verifiers=[verifier(memory_bytes=40.0)]),
        "cost": problem_of(
            "cost", verifiers=[verifier(units=2), verifier("small", price_per_second=1.0)]
        ),
        "energy": problem_of("energy", verifiers=[verifier(units=2)]),
        "one client": problem_of(classes=[client_class(clients=1)]),
        "ties": problem_of(
            verifiers=[verifier(), verifier("twin")],
            drafters=[drafter(), drafter("drafter again")],
            classes=[client_class(clients=2, acceptance={"drafter": 0.5, "drafter again": 0.5})],
        ),
        "pool": problem_of(
            drafters=[drafter(**server)],
            draft_pools=[pool()],
            classes=[client_class(device_seconds_per_token={})],
        ),
        "parallel drafter": problem_of(
            "fair",
            drafters=[drafter(kind="parallel")],
            verifiers=[verifier(reserved_share=0.25, idle_watts=0.0)],
        ),
        "no drafters": problem_of(
            "fair", drafters=[], classes=[client_class(acceptance={}, device_seconds_per_token={})]
        ),
        "no drafting ahead": problem_of(
            overlap=False,
            bits_per_draft_token=1.0,
            classes=[client_class(uplink_bits_per_second=2.0 / TICK)],
        ),
        "memory for exactly 3": problem_of(verifiers=[verifier(memory_bytes=10.0 + 3 * needs)]),
        "rate that just fits": problem_of(
            drafters=[],
            classes=[
                client_class(
                    acceptance={},
                    device_seconds_per_token={},
                    min_tokens_per_second=1.0 / (10 * TICK),
                )
            ],
        ),
        "infeasible: rate": problem_of(
            classes=[client_class(), client_class("fast", 1, min_tokens_per_second=1000.0)]
        ),
        "infeasible: memory": problem_of(verifiers=[verifier(memory_bytes=9.0 + needs)]),
        "infeasible: units": problem_of(
            "fair", verifiers=[verifier(memory_bytes=10.0 + 2 * needs)]
        ),
    }


INSTANCES = _instances()
