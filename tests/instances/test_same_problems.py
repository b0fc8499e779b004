"""The same parameters and seed give the same problem as ever: the library and all records rest on
it.

`tests/data/families.json` holds a short print of the problem of every family, and of those where
one parameter is at an end of what it may be, or beyond: then it holds the message of the refusal.
A change that is meant is recorded with
``.venv/bin/python -P tests/instances/test_same_problems.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specopt import InvalidInput
from specopt.api.generate import FAMILIES, WORKLOADS
from specopt.instances.family import Family

RECORD = Path(__file__).parents[1] / "data" / "families.json"
ALL = FAMILIES | WORKLOADS
ENDS: dict[type[Any], tuple[Any, ...]] = {
    bool: (True, False),
    int: (-1, 0, 1),
    float: (-1.0, 0.0, 1.0, 2.0),
    str: ("other",),
}


def leaves(data: Any) -> Iterator[float | str]:
    """Yield numbers and texts of a JSON value in order, each after its name."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield name
            yield from leaves(value)
    elif isinstance(data, list):
        for value in data:
            yield from leaves(value)
    elif data is not None:
        yield data


def print_of(family: Family, **parameters: Any) -> Any:
    """Return how many numbers a problem has and a sum that each of them changes, or why there is no
    problem.
    """
    try:
        found = list(leaves(family.generate(seed=1, **parameters).to_dict()))
    except InvalidInput as error:
        return str(error)
    numbers = [math.asinh(1e15 * one) for one in found if not isinstance(one, str)]
    texts = " ".join(one for one in found if isinstance(one, str))
    return [
        len(numbers),
        sum((1.0 + math.sin(i)) * one for i, one in enumerate(numbers)),
        len(texts),
    ]


def prints(family: Family) -> dict[str, Any]:
    """Return the prints of a family: as it is, and with one parameter after the other at its
    ends.
    """
    ends = [(name, value) for name, kind in family.plain.items() for value in ENDS.get(kind, ())]
    return {
        "": print_of(family),
        **{f"{name}={value}": print_of(family, **{name: value}) for name, value in ends},
    }


RECORDED: dict[str, dict[str, Any]] = json.loads(RECORD.read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_problems_are_those_of_before(name: str) -> None:
    """Tests that a recorded family's problems and refusals have not changed; new families and
    parameters are fine.
    """
    assert ALL[name].defaults.get("seed", 0) == 0
    found = prints(ALL[name])
    for parameter, expected in RECORDED[name].items():
        same = expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-11)
        assert found[parameter] == same, parameter


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(prints(family))}" for name, family in ALL.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
