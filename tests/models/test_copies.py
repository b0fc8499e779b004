"""Tests that copies of problems, plans and results are as read-only as these, and keep no digest of
other data.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from helpers.instances import small_instances

from specopt import Problem, solve
from specopt.kinds import KINDS
from specopt.models.draft_stopping.problem import Transitions
from specopt.models.files import from_dict
from specopt.models.problem import Plan

PROBLEMS = {kind.name: small_instances(kind.name).values() for kind in KINDS}
COPIES: dict[str, Callable[[Any], Any]] = {
    "constructor": lambda value: value,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "replace": dataclasses.replace,
    "file": lambda value: _read(json.loads(json.dumps(value.to_dict(), allow_nan=False)), value),
}


def _read(data: dict[str, Any], value: Any) -> Any:
    """Return what the content of a file makes of a problem, result or plan."""
    return type(value).from_dict(data) if isinstance(value, Plan) else from_dict(data)


def arrays(value: Any) -> Iterator[np.ndarray]:
    """Yield the arrays of a value, and those that it has computed from them."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Mapping):
        yield from arrays(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays(item)
    elif dataclasses.is_dataclass(value):
        yield from arrays([item for name, item in vars(value).items() if not name.startswith("_")])


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_copies_are_read_only(kind: str, way: str) -> None:
    """Tests that nobody can write into a problem, its plan or its result, nor into a copy of
    these.
    """
    problem: Problem
    for problem in PROBLEMS[kind]:
        digest = problem.sha256
        result = solve(problem, time_limit=0)
        for value in (problem, result, result.plan):
            if value is not None:
                copied = COPIES[way](value)
                assert copied == value
                assert not any(array.flags.writeable for array in arrays(copied))
        copied = COPIES[way](problem)
        assert copied.sha256 == digest


@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_copy_computes_its_own_digest(kind: str, way: str) -> None:
    """Tests that a copy does not take over what was computed from the original."""
    problem = dataclasses.replace(next(iter(PROBLEMS[kind])))
    problem.__dict__["sha256"] = "of another problem"
    assert COPIES[way](problem).sha256 == dataclasses.replace(problem).sha256


def test_a_table_is_not_the_caller_s_array() -> None:
    """Tests that a value that is built from an array has a read-only one of its own."""
    rows = np.zeros((2, 2), np.int64)
    table = Transitions(rows)
    rows[0, 0] = 1
    assert table.rows[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        table.rows[0, 0] = 1
