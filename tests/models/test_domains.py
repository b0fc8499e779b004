"""Every field of every kind refuses each value outside the domain that its schema states, and names
the field: in problem files, in plans, and in problems built in Python.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers.instances import small_instances

from specopt import InvalidInput, solve
from specopt.kinds import KINDS
from specopt.kinds.kind import Kind
from specopt.models.schema import schema as schema_of

Path = tuple[str | int, ...]

NUMBERS = {"integer", "number"}

DENORMAL = 5e-324
"""A number that is too small to keep all its digits."""

HUGE = (2**63, 10**400)
"""Whole numbers beyond 64 bits, and beyond floating point."""


def outside(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values outside the domain of a number, a choice or a flag."""
    if schema.get("type") in NUMBERS:
        yield from ("x", True, math.nan, math.inf, DENORMAL, HUGE[1])
        if schema["type"] == "integer":
            yield from (2.0, HUGE[0])
        step = 1 if schema["type"] == "integer" else 1e-3
        for name, sign in (
            ("minimum", -1),
            ("maximum", 1),
            ("exclusiveMinimum", 0),
            ("exclusiveMaximum", 0),
        ):
            if name in schema:
                yield schema[name] + sign * step
    elif "enum" in schema:
        yield from ("no such value", 1)
    elif schema.get("type") == "boolean":
        yield from ("x", 1)


def chosen(schema: dict[str, Any], data: Any) -> dict[str, Any]:
    """Return the member of a union that data is written in."""
    kinds = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
        int: "integer",
        float: "number",
    }
    for one in schema.get("anyOf", [schema]):
        if isinstance(data, dict) and not set(one.get("required", [])) <= set(data):
            continue
        expected = {"integer", "number"} if type(data) is int else {kinds.get(type(data), "null")}
        if one.get("type") in expected or ("enum" in one and data in one["enum"]):
            return dict(one)
    return {}


def changes(schema: dict[str, Any], data: Any, path: Path = ()) -> Iterator[tuple[Path, Any, str]]:
    """Yield every path into data with a value that is refused there, and the name that the message
    contains.
    """
    is_union = "anyOf" in schema
    schema = chosen(schema, data)
    name = ".".join(str(part) for part in path if isinstance(part, str)) or "problem"
    if isinstance(data, dict):
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is False or not path:
            yield path, data | {"no_such_field": 1}, "no_such_field"
        for field in schema.get("required", []):
            if field not in ("format", "kind"):
                yield (
                    path,
                    {key: value for key, value in data.items() if key != field},
                    "" if is_union else field,
                )
        for field, value in data.items():
            inner = properties.get(field, schema.get("additionalProperties"))
            if isinstance(inner, dict):
                yield from changes(inner, value, (*path, field))
    elif isinstance(data, list):
        yield path, "x", name
        if schema.get("minItems") and all(not isinstance(part, int) for part in path):
            yield path, [], ""
        if isinstance(schema.get("items"), dict):
            for index in range(min(len(data), 2)):
                yield from changes(schema["items"], data[index], (*path, index))
    else:
        for value in outside(schema):
            yield path, value, name


def replaced(data: Any, path: Path, value: Any) -> Any:
    """Return a copy of data with another value at a path."""
    if not path:
        return value
    found = copy.deepcopy(data)
    inner = found
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return found


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@every_kind
def test_values_outside_a_domain_are_refused_by_name(kind: Kind) -> None:
    """Tests that wrong types, values beyond both ends, NaN, unknown and missing fields are refused
    with their name.
    """
    schema, tried, taken = kind.problem.json_schema(), 0, []
    for label, problem in small_instances(kind.name).items():
        data = problem.to_dict()
        for path, value, name in changes(schema, data):
            tried += 1
            try:
                kind.problem.from_dict(replaced(data, path, value))
            except InvalidInput as error:
                if name.rpartition(".")[2] not in str(error):
                    taken.append((label, path, value, str(error)))
            else:
                taken.append((label, path, value, "accepted"))
    assert tried > 100
    assert taken == []


@every_kind
def test_constructors_refuse_too(kind: Kind) -> None:
    """Tests that what a file may not hold in a number, a text or a column is refused in Python."""
    properties = kind.problem.json_schema()["properties"]
    for problem in small_instances(kind.name).values():
        data = problem.to_dict()
        for field in data.keys() - {"format", "kind"}:
            if isinstance(getattr(problem, field), np.ndarray | float | int | str):
                for path, value, _ in changes(properties[field], data[field], (field,)):
                    wrong = replaced(data, path, value)[field]
                    with pytest.raises(InvalidInput, match=field):
                        dataclasses.replace(problem, **{field: wrong})


@every_kind
def test_plans_are_read_as_strictly(kind: Kind) -> None:
    """Tests that plans refuse such values, too. The judge looks at tiny numbers and indices."""
    plan = solve(next(iter(small_instances(kind.name).values()))).plan
    assert plan is not None
    for path, value, name in changes(schema_of(kind.plan), plan.to_dict()):
        if value not in (DENORMAL, *HUGE):
            with pytest.raises(InvalidInput, match=name.rpartition(".")[2] or None):
                kind.plan.from_dict(replaced(plan.to_dict(), path, value))
