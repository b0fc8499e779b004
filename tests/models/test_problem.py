"""The identity of a problem: the digest of its canonical JSON, however that is written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.models.problem import LONG_COLUMN, canonical_json

numbers = st.floats(allow_nan=False, allow_infinity=False)


def plain(data: dict[str, Any]) -> bytes:
    """The canonical form as the standard library writes it."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


@given(st.dictionaries(st.text(), st.one_of(st.text(), numbers, st.integers(), st.lists(numbers, max_size=5))))
def test_canonical_json(data: dict[str, Any]) -> None:
    """Tests that the text is that of the standard library."""
    assert canonical_json(data) == plain(data)


@given(st.lists(st.one_of(numbers, st.floats(1e-5, 1e17), st.integers(-9, 9).map(float)), min_size=1, max_size=20))
def test_canonical_json_of_long_columns(values: list[float]) -> None:
    """Tests that long columns give the same text, with exponents and without."""
    assert canonical_json({"b": values * LONG_COLUMN, "a": values}) == plain({"b": values * LONG_COLUMN, "a": values})


@pytest.mark.parametrize("kind", ["floats", "integers", "decimals", "batches", "objects", "words", "edges"])
def test_canonical_json_of_every_kind_of_column(kind: str) -> None:
    """Tests that the same holds for random digits of every size, for integers, and for what is no column of numbers."""
    rng = np.random.default_rng(1)
    edges = [1e-4, float(np.nextafter(1e-4, 0)), float(np.nextafter(1e15, 0)), 1e15, 1e16, 0.0, -0.0, 5e-324]
    column: list[Any] = {
        "floats": (10 ** rng.uniform(-4, 15, 100_000)).tolist(),
        "integers": rng.integers(-(2**62), 2**62, 2000).tolist(),
        "decimals": np.round(rng.uniform(-100, 100, 2000), 3).tolist(),
        "batches": [[1, 2]] * 2000,
        "objects": [{"b": 1e-7, "a": 2}] * 2000,
        "words": ["ä"] * 2000,
        "edges": edges * 200,
    }[kind]
    assert canonical_json({"column": column}) == plain({"column": column})
