"""Baselines without drafts, from records with known plays."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.undrafted import undrafted


def control(*lengths: int) -> dict[str, Any]:
    """Return a record of a policy with these draft lengths. A round takes 0.1 s, or 0.4 s if it
    drafts.
    """
    seconds = [0.4 if length else 0.1 for length in lengths]
    rounds = {"seconds": seconds, "tokens_per_second": 4.0}
    policy = [{"draft_length": length} for length in lengths]
    trial = {
        "scene": 0,
        "label": "policies",
        "methods": ["a"],
        "plan": {"policy": policy},
        "measured": [rounds, rounds],
    }
    predicted = {"model": {"tokens_per_second": 5.0}}
    states = [list(range(len(lengths)))]
    return {
        "kind": "draft-control",
        "pair": "x",
        "states": states,
        "trials": [{**trial, "predicted": predicted}],
    }


def test_rounds_without_drafts_are_the_rival_of_policies() -> None:
    """Tests that the baseline yields one token in each round without drafts, and that it is missing
    if there is no such round.
    """
    (found,) = undrafted(control(0, 2, 0))
    assert found.undrafted.value == pytest.approx(10.0)
    assert found.drafted == (4.0, 4.0)
    assert found.source.startswith("4 rounds")
    assert undrafted(control(1, 2)) == []


def test_autoregressive_plans_are_the_rival_of_their_scene() -> None:
    """Tests that the fastest plan without drafts is listed with the slowest and the fastest with
    drafts.
    """
    rows = [
        (0, "pipelined", 4.0),
        (0, "sequential", 6.0),
        (0, "autoregressive", 3.0),
        (0, "autoregressive", 5.0),
    ]
    trials = [
        {
            "scene": scene,
            "label": label,
            "methods": ["a"],
            "predicted": {"model": {"total_seconds": 1.0}},
        }
        | {"measured": [{"total_seconds": seconds}]}
        for scene, label, seconds in [*rows, (1, "pipelined", 1.0)]
    ]
    (found,) = undrafted({"kind": "serving-latency", "pair": "x", "trials": trials})
    assert (found.scene, found.drafted, found.undrafted.value) == (0, (6.0, 4.0), 3.0)
