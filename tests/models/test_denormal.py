"""Numbers that are too small for floating point to hold all digits of, in every real field of every kind."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import pytest
from fuzz.seed_problems import families_of, small_parameters

from specopt import InvalidInput, VerificationBatchProblem, generate
from specopt.kinds import KINDS
from specopt.models.problem import problem_type

EXTRA: dict[str, dict[str, Any]] = {"serving-latency": {"embedding_bits_per_token": 16.0}}
"""Optional fields that none of the small problems has."""


def declared(body: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the real fields of a schema: names with dots, [] for the items of a list."""
    if "anyOf" in body:
        for option in body["anyOf"]:
            yield from declared(option, path)
    elif body.get("type") == "object":
        for name, field in body.get("properties", {}).items():
            yield from declared(field, f"{path}.{name}".lstrip("."))
    elif body.get("type") == "array":
        for item in body.get("prefixItems") or [body.get("items") or {}]:
            yield from declared(item, f"{path}[]")
    elif body.get("type") == "number":
        yield path


def reals(data: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield where the real numbers of JSON-like data are: the first 5 of a list."""
    if isinstance(data, (dict, list)):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data[:5]):
            yield from reals(value, (*path, key))
    elif isinstance(data, float):
        yield path


def written(path: tuple[str | int, ...]) -> str:
    """Return a place as messages name it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def changed(data: dict[str, Any], path: tuple[str | int, ...], value: float) -> dict[str, Any]:
    """Return the data with another number at a place."""
    out = copy.deepcopy(data)
    at: Any = out
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return out


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_real_field_refuses_denormal_numbers(kind: str) -> None:
    """Tests that each real field of each kind, inside objects too, refuses 5e-324 by name."""
    small = import_module(f"small_instances.{kind.replace('-', '_')}").INSTANCES.values()
    problems = [*small, *(generate(name, seed=0, **small_parameters(name)) for name in families_of(kind))]
    messages: dict[str, set[str]] = {}
    for data in (problem.to_dict() | EXTRA.get(kind, {}) for problem in problems):
        for path in reals(data):
            with pytest.raises(InvalidInput) as refused:
                problem_type(kind).from_dict(changed(data, path, 5e-324))
            said = str(refused.value).replace(written(path), "HERE", 1)
            messages.setdefault(re.sub(r"\[\d+\]", "[]", written(path)), set()).add(said)
    assert set(messages) >= set(declared(problem_type(kind).json_schema()))  # maps have names of their own inside
    expected = f"HERE: expected 0 or a number of size >= {sys.float_info.min}, got 5e-324"
    assert [field for field, said in messages.items() if expected not in said] == []


@pytest.mark.parametrize(("value", "refused"), [(0.0, False), (sys.float_info.min, False), (-1e-310, True)])
def test_smallest_numbers(value: float, refused: bool) -> None:
    """Tests that 0 and the smallest normal number are taken, and that negative denormal ones are refused."""
    data = {
        "format": "specopt/1", "kind": "verification-batch", "now_seconds": value, "memory_bytes": 1.0,
        "expected_tokens": [1.0], "new_tokens": [1], "cached_tokens": [0], "request_memory_bytes": [0.5],
        "deadline_seconds": [1.0],
        "estimator": dict.fromkeys(("seconds_per_new_token", "seconds_per_interaction", "seconds_per_cached_token",
                                    "overhead_seconds"), 0.0),
    }  # fmt: skip
    with pytest.raises(InvalidInput, match=r"^now_seconds: expected 0 or") if refused else nullcontext():
        VerificationBatchProblem.from_dict(data)
