"""Valid problems to mutate: of every family, small, so that thousands of them are solved in a
minute.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from specopt import InvalidInput, generate
from specopt.api.generate import FAMILIES

SMALL = 5
"""What whole-number parameters of a family are cut to, where the family takes it: tasks, clients,
states.
"""


@cache
def families_of(kind: str) -> tuple[str, ...]:
    """Return the families of a kind."""
    return tuple(name for name in FAMILIES if name.startswith(f"{kind}/"))


@cache
def small_parameters(family: str) -> dict[str, Any]:
    """Return parameters that make a family's problems small: what it refuses stays at its
    default.
    """
    chosen: dict[str, Any] = {}
    for name, default in FAMILIES[family].defaults.items():
        if type(default) is not int or default <= SMALL or name == "seed":
            continue
        for value in (SMALL, 4 * SMALL):
            try:
                generate(family, **chosen, **{name: value})
            except InvalidInput:
                continue
            chosen[name] = value
            break
    return chosen


def seed_problem(kind: str, rng: random.Random) -> dict[str, Any]:
    """Return a valid problem file of a kind, as JSON-like data."""
    family = rng.choice(families_of(kind))
    return generate(family, seed=rng.randrange(100), **small_parameters(family)).to_dict()
