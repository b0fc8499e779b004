"""Every field of every kind refuses each value outside the domain that its schema states, and names
the field.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from specopt import InvalidInput
from specopt.kinds import KINDS
from specopt.kinds.kind import Kind

Path = tuple[str | int, ...]

NUMBERS = {"integer", "number"}

DENORMAL = 5e-324
"""A number that is too small to keep all its digits."""


def outside(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values outside the domain of a number, a choice or a flag."""
    if schema.get("type") in NUMBERS:
        yield from ("x", True, math.nan, math.inf, DENORMAL)
        if schema["type"] == "integer":
            yield 1.5
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
    is_union, schema = "anyOf" in schema, chosen(schema, data)
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


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_values_outside_a_domain_are_refused_by_name(kind: Kind) -> None:
    """Tests that wrong types, values beyond both ends, NaN, unknown and missing fields are refused
    with their name.
    """
    schema, tried, taken = kind.problem.json_schema(), 0, []
    for label, problem in import_module(
        f"small_instances.{kind.name.replace('-', '_')}"
    ).INSTANCES.items():
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
