"""Relations that hold between the optimal values of related `draft-control` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from random import Random

from specopt.kinds.relation import (
    NAMES,
    RELAXED,
    UNITS,
    Data,
    likelier,
    raised,
    relations_of,
    scaled,
    shuffled,
    times,
)
from specopt.models.draft_control.problem import DraftControlProblem

_LINKS = ("uplink_bits_per_second", "downlink_bits_per_second")


def _permuted(data: Data, random: Random) -> Data:
    order = shuffled(data["states"], random)
    rows = [[data["transition"][i][j] for j in order] for i in order]
    return data | {"states": [data["states"][i] for i in order], "transition": rows}


def _longer(data: Data, random: Random) -> Data | None:
    if isinstance(data["verify_seconds"], list):
        return None
    low, high = data["draft_lengths"]
    return data | {"draft_lengths": [low, high + 1]}


def _likelier(data: Data, random: Random) -> Data:
    change = raised("acceptance_rates", likelier)
    return data | {"states": [change(state, random) for state in data["states"]]}


_keeps = relations_of(DraftControlProblem)

RELATIONS = (
    _keeps("states permuted", NAMES, _permuted, equal=True),
    _keeps(
        "time scaled",
        UNITS,
        scaled(
            {"draft_seconds_per_token": 2.0, "verify_seconds": 2.0, **dict.fromkeys(_LINKS, 0.5)}
        ),
        implied=times(0.5),
        equal=True,
    ),
    _keeps("longer drafts allowed", RELAXED, _longer, when="one verify time for all lengths"),
    _keeps("acceptance raised", "every policy gains from acceptance", _likelier),
    _keeps("faster links", "no iteration becomes longer", scaled(dict.fromkeys(_LINKS, 1.5))),
)
