"""What a simulation takes where nothing is said: results that others repeat rest on it."""

from __future__ import annotations

import importlib
import inspect

import pytest

KINDS = (
    "draft_control",
    "fair_goodput",
    "placement",
    "prompt_chunking",
    "serving_latency",
    "verification_batch",
)


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_those_of_before(kind: str) -> None:
    """Tests that the seed is 0, and that a channel runs 100 iterations before any counts."""
    given = inspect.signature(
        importlib.import_module(f"specopt.solvers.{kind}.simulate").simulate
    ).parameters
    assert given["seed"].default == 0
    assert kind != "draft_control" or given["warm_up"].default == 100
