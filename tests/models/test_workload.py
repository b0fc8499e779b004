"""Workloads as files: what is saved is what is played, and wrong fields are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.simulations import SHORT

from specopt import InvalidInput, load, save, simulate, workload
from specopt.api.generate import WORKLOADS
from specopt.models.files import from_dict
from specopt.models.workload import Workload

POLICY = {"fair-goodput": "fixed", "verification-batch": "fcfs", "prompt-chunking": "hat"}


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_file_holds_all(name: str, tmp_path: Path) -> None:
    """Tests that every workload comes back from its file as it was, and that policies reach the
    same on it.
    """
    kind = name.partition("/")[0]
    made = workload(name, seed=3)
    save(made, tmp_path / "workload.json")
    again = load(tmp_path / "workload.json")
    assert isinstance(again, Workload) and again == made and again.kind == f"{kind}-workload"
    one, other = (simulate(world, POLICY[kind], **SHORT[kind]) for world in (made, again))
    assert one.mean == other.mean


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget_tokens": None}, "budget_tokens: expected an integer >= 0, got None"),
        ({"budget": 3}, "the workload: unknown field 'budget'"),
        ({"rates": [[[1.0]]]}, r"rates: expected acceptance rates in \[0, 1\)"),
        ({"transition": [[0.5]]}, "transition: expected rows of probabilities"),
    ],
)
def test_wrong_fields_are_named(change: dict[str, Any], message: str) -> None:
    """Tests that each wrong field of a workload of goodput is named."""
    data = workload("fair-goodput/fixed").to_dict() | change
    with pytest.raises(InvalidInput, match=message):
        from_dict(data)


def test_workloads_have_names() -> None:
    """Tests that an unknown family of workloads is refused with those that are."""
    with pytest.raises(
        InvalidInput,
        match=r"family: expected one of .*fair-goodput/switching.*, got 'fair-goodput/paper-5'",
    ):
        workload("fair-goodput/paper-5")
