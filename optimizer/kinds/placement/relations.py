"""Relations that hold between the optimal values of related `placement` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from math import fsum, log
from random import Random
from typing import Any

from specopt.kinds.relation import (
    NAMES,
    RELAXED,
    UNITS,
    Change,
    Data,
    permuted,
    relations_of,
    replaced,
    scaled,
)
from specopt.models.pass_time.pieces import PIECE
from specopt.models.placement.problem import PlacementProblem


def _each(field: str, **changed: Any) -> Change:
    """Return a change that modifies entries of every object in the list `field` of a problem.

    `changed` contains a function of the old value for each entry to modify. The change returns None
    if it would have no effect.
    """

    def change(data: Data, random: Random) -> Data | None:
        rows = [
            row | {name: new(row[name]) for name, new in changed.items() if name in row}
            for row in data.get(field, [])
        ]
        return None if rows == data.get(field, []) else data | {field: rows}

    return change


def _drafter(data: Data, random: Random) -> Data | None:
    """Add another drafter with the acceptance rates and drafting places of the first drafter.

    Return None if the problem has no drafter.
    """
    if not data["drafters"]:
        return None
    first = data["drafters"][0]["name"]

    def twin(of: dict[str, Any]) -> dict[str, Any]:
        return of | ({"another": of[first]} if first in of else {})

    columns = ("acceptance", "device_seconds_per_token")
    classes = [
        row | {name: twin(row[name]) for name in columns if name in row} for row in data["classes"]
    ]
    kind = random.choice(["sequential", "parallel"])
    return data | {
        "drafters": [*data["drafters"], data["drafters"][0] | {"name": "another", "kind": kind}],
        "classes": classes,
    }


def _places(data: Data, random: Random) -> Data | None:
    """Allow every drafter to run beside the first verifier.

    Return None if this is already allowed.
    """
    name = data["verifiers"][0]["name"]
    rows = [
        row | {"beside": {name: data["verifiers"][0]["passes"]} | row.get("beside", {})}
        for row in data["drafters"]
    ]
    return None if rows == data["drafters"] else data | {"drafters": rows}


def _halved(problem: PlacementProblem, objective: float) -> float:
    """Return the objective of a plan after the rates of all clients are halved.

    `objective` is the objective before the change.
    """
    shift = fsum(one.weight * one.clients for one in problem.classes) * log(2.0)
    return {"goodput": objective / 2.0, "fair": objective - shift}.get(problem.objective, objective)


_SLOWER = dict.fromkeys((*PIECE, "round_trip_seconds", "device_seconds_per_token"), 2.0)
_SLOWER |= {"min_tokens_per_second": 0.5, "uplink_bits_per_second": 0.5}
_BYTES = dict.fromkeys(("memory_bytes", "weights_bytes", "kv_bytes_per_token"), 2.0)
_declared = relations_of(PlacementProblem)

RELATIONS = (
    _declared("classes permuted", NAMES, permuted("classes"), equal=True),
    _declared("time scaled", UNITS, scaled(_SLOWER), implied=_halved, equal=True),
    _declared("bytes scaled", "needs and memory scale equally", scaled(_BYTES), equal=True),
    _declared("one more unit", RELAXED, _each("verifiers", units=lambda n: n + 1)),
    _declared(
        "one more draft unit",
        RELAXED,
        _each("draft_pools", units=lambda n: n + 1),
        when="there are pools",
    ),
    _declared("more memory", RELAXED, _each("verifiers", memory_bytes=lambda size: 1.25 * size)),
    _declared("one more drafter", RELAXED, _drafter),
    _declared(
        "more drafters next to verifiers",
        RELAXED,
        _places,
        when="a drafter may not run beside the first verifier",
    ),
    _declared(
        "lower minimum rates",
        RELAXED,
        _each("classes", min_tokens_per_second=lambda rate: 0.9 * rate),
        when="minimum rates are given",
    ),
    _declared(
        "drafting ahead allowed",
        RELAXED,
        replaced("overlap", True, among=[False]),
        when="drafting ahead is not allowed",
    ),
)
