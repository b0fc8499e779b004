"""Parsing of `name=value` pairs from the command line. The pairs set the options of methods, the
parameters of problem families, and the fields of problems.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from specopt.api.generate import known_family
from specopt.api.solve import choose
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.problem import Problem
from specopt.solvers.budget import MEMORY_LIMIT
from specopt.solvers.method import Method

P = TypeVar("P", bound=Problem)


def pairs_of(values: Sequence[str], option: str) -> dict[str, str]:
    """Parse strings of the form `name=value` into a dictionary that keeps their order.

    Raises
    ------
    InvalidInput
        If a string has no name or no equals sign, or if a name occurs twice.
    """
    pairs: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidInput(f"{option}: expected name=value, got {value!r}")
        if name in pairs:
            raise InvalidInput(f"{option} {name}: given twice; give it once")
        pairs[name] = text.strip()
    return pairs


def method_of(
    problem: Problem, name: str | None, values: Sequence[str], memory_limit: float = MEMORY_LIMIT
) -> Method:
    """Return the method with a given name and options. The name None selects the default method.

    Raises
    ------
    InvalidInput
        If the method does not have one of the options, or if the value of an option has the wrong
        type. The message lists the options of the method.
    Unsupported
        If the method does not exist or cannot solve the problem.
    """
    method = choose(problem, name, memory_limit)
    has = ", ".join(f"{key}={value}" for key, value in method.options.items()) or "none"
    otherwise = f"method {method.name} has no such option; its options: {has}"
    options = _typed_pairs(values, "--option", option_types(type(method)), otherwise)
    return dataclasses.replace(method, **options)


def option_types(method: type[Method]) -> dict[str, Any]:
    """Return the type of each option of a method, by option name."""
    hints = get_type_hints(method)
    return {field.name: hints[field.name] for field in dataclasses.fields(method)}


def _typed_pairs(
    values: Sequence[str], option: str, types: Mapping[str, Any], otherwise: str
) -> dict[str, Any]:
    found = {}
    for name, text in pairs_of(values, option).items():
        if name not in types:
            raise InvalidInput(f"{option} {name}: {otherwise}")
        found[name] = typed(f"{option} {name}", types[name], text)
    return found


def parameters_of(family: str, values: Sequence[str]) -> dict[str, Any]:
    """Parse parameters of a problem family. Each value is converted to the type of its default.

    Raises
    ------
    InvalidInput
        If the family or a parameter does not exist, or if a value has the wrong type.
    """
    defaults = dict(known_family("KIND/FAMILY", family).defaults)
    defaults.pop("seed", None)
    has = ", ".join(f"{key}={value}" for key, value in defaults.items())
    otherwise = f"{family} has no such parameter; its parameters: {has}; the seed is --seed"
    types = {name: type(value) for name, value in defaults.items()}
    return _typed_pairs(values, "--param", types, otherwise)


def with_fields(problem: Problem, values: Sequence[str]) -> Problem:
    """Return a copy of a problem with some fields replaced.

    Each value is parsed as JSON. A value that is not valid JSON is used as a string. Dots in a
    field name separate the levels of nested fields.

    Raises
    ------
    InvalidInput
        If a field does not exist, or if the problem rejects the new value.
    """
    for path, text in pairs_of(values, "--set").items():
        problem = with_field(problem, path, json_or_text(text), "--set ")
    return problem


def json_or_text(text: str) -> Any:
    """Parse a string as JSON. Return the string unchanged if it is not valid JSON."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def with_field(problem: P, path: str, value: Any, where: str = "") -> P:
    """Return a copy of a problem with one field replaced.

    Dots in `path` separate the levels of nested fields. If a level is a list, an integer in the
    path selects one entry, and any other name is applied to every entry.

    Raises
    ------
    InvalidInput
        If the path does not exist, or if the problem rejects the value. The error message begins
        with `where`.
    """
    if not isinstance(path, str):
        raise InvalidInput(f"field: expected the name of a field, got {describe(path)}")
    data = json.loads(json.dumps(problem.to_dict()))
    _assign(data, path.split("."), value, f"{where}{path}")
    return type(problem).from_dict(data)


def _assign(place: Any, steps: Sequence[str], value: Any, where: str) -> None:
    step, *rest = steps
    if isinstance(place, list) and not step.isdecimal():
        for part in place:
            _assign(part, steps, value, where)
        return
    if isinstance(place, list) and int(step) < len(place):
        key: Any = int(step)
    elif isinstance(place, dict) and (step in place or not rest):
        key = step  # Problem.from_dict rejects unknown names
    elif isinstance(place, dict | list):
        raise InvalidInput(f"{where}: the problem has no {step!r} there")
    else:
        raise InvalidInput(f"{where}: {step!r} leads into a value without fields")
    if rest:
        _assign(place[key], rest, value, where)
    else:
        place[key] = value


def typed(name: str, hint: Any, text: str) -> Any:
    """Convert a string to the type given by an annotation.

    The type is bool, int, float, str, a Literal, or a union of such a type with None.

    Raises
    ------
    InvalidInput
        If the string does not represent a value of the type.
    """
    origin, members = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if NoneType in members and text.lower() in ("none", "null"):
            return None
        return typed(name, next(member for member in members if member is not NoneType), text)
    word = ""
    value: Any = text
    if origin is Literal and text not in members:
        word = f"one of {', '.join(map(str, members))}"
    elif hint is bool:
        word = "" if text.lower() in ("true", "false") else "true or false"
        value = text.lower() == "true"
    elif hint in (int, float):
        try:
            value = hint(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            word = "an integer" if hint is int else "a finite number"
    if word:
        raise InvalidInput(f"{name}: expected {word}, got {text!r}")
    return value
