"""What optima of `draft-control` keep."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from specopt.models.draft_control import DraftControlProblem
from specopt.testing.relations.base import (
    NAMES,
    RELAXED,
    UNITS,
    Change,
    Data,
    Relation,
    likelier,
    scaled,
)


def _relations() -> list[Relation]:
    kind = DraftControlProblem.kind
    links = ("uplink_bits_per_second", "downlink_bits_per_second")
    scale = {"draft_seconds_per_token": 2.0, "verify_seconds": 2.0, "states": 1.0, **dict.fromkeys(links, 0.5)}

    def permuted(data: Data, random: Random) -> Data:
        order = random.sample(range(len(data["states"])), len(data["states"]))
        return data | {"states": [data["states"][i] for i in order],
                       "transition": [[data["transition"][i][j] for j in order] for i in order]}  # fmt: skip

    def states(change: Callable[[Data], Data]) -> Change:
        return lambda data, random: data | {"states": [state | change(state) for state in data["states"]]}

    def longer(data: Data, random: Random) -> Data | None:
        low, high = data["draft_lengths"]
        return None if isinstance(data["verify_seconds"], list) else data | {"draft_lengths": [low, high + 1]}

    rates = states(lambda state: {"acceptance_rates": [likelier(rate) for rate in state["acceptance_rates"]]})
    faster = states(lambda state: {name: 1.5 * state[name] for name in links if name in state})
    return [
        Relation(kind=kind, name="states permuted", reason=NAMES, change=permuted, equal=True),
        Relation(kind=kind, name="time scaled", reason=UNITS, change=scaled(scale), equal=True,
                 implied=lambda problem, objective: 0.5 * objective),
        Relation(kind=kind, name="longer drafts allowed", when="one verify time for all lengths", reason=RELAXED,
                 change=longer),
        Relation(kind=kind, name="drafts likelier", reason="every policy gains from acceptance", change=rates),
        Relation(kind=kind, name="faster links", reason="every iteration is as short or shorter", change=faster),
    ]  # fmt: skip


RELATIONS = tuple(_relations())
