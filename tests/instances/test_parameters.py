"""Every parameter of every family refuses values outside its domain by name."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from specopt import InvalidInput
from specopt.api.generate import FAMILIES, WORKLOADS

ALL = FAMILIES | WORKLOADS

WRONG: dict[type[Any], tuple[Any, ...]] = {
    bool: ("x", 2),
    int: ("x", 1.5, True, math.nan),
    float: ("x", True, math.nan, math.inf),
    str: ("no such value", 1),
}
"""Values that no parameter with a default of a type accepts."""


@pytest.mark.parametrize("name", ALL)
def test_values_of_a_wrong_type_are_refused_by_name(name: str) -> None:
    """Tests that text, NaN, infinity, Booleans and fractions are refused where they mean
    nothing.
    """
    family = ALL[name]
    accepted = []
    for parameter, kind in family.plain.items():
        for value in WRONG[kind]:
            try:
                family.generate(**{parameter: value})
            except InvalidInput as error:
                if not re.match(
                    r"[\w.\[\]]+: ", str(error)
                ):  # the parameter, or the field of the problem that it sets
                    accepted.append((parameter, value, str(error)))
            else:
                accepted.append((parameter, value, "accepted"))
    assert accepted == []


@pytest.mark.parametrize(
    ("family", "parameters", "message"),
    [
        (
            "serving-latency/paper-1",
            {"colour": 1},
            "colour: serving-latency/paper-1 has no such parameter; its parameters: pair, tasks, ",
        ),
        ("draft-allocation/paper-5", {"clients": 4}, "budget: expected one of 24, 28, got 20"),
    ],
)
def test_parameters_that_do_not_exist_or_go_together(
    family: str, parameters: dict[str, Any], message: str
) -> None:
    """Tests that the message names the parameter. What is outside the domain of a single one is
    refused with the message that `test_same_problems.py` compares.
    """
    with pytest.raises(InvalidInput, match=message):
        ALL[family].generate(**parameters)
