"""Rivals without drafts, from records whose plays are known."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.undrafted import undrafted


def control(*lengths: int) -> dict[str, Any]:
    """Return a record of a policy of these draft lengths; a round takes 0.1 s, and 0.4 s where it
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
    """Tests that the rival makes a token in each round that drafts nothing, and that without one
    there is none.
    """
    (found,) = undrafted(control(0, 2, 0))
    assert found.undrafted.value == pytest.approx(10.0)
    assert found.drafted == (4.0, 4.0)
    assert found.source.startswith("4 rounds")
    assert undrafted(control(1, 2)) == []


def test_autoregressive_plans_are_the_rival_of_their_scene() -> None:
    """Tests that the fastest plan without drafts stands beside the slowest and the fastest with
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
