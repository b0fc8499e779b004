"""All actions of one state; that they hold the optimum is tested beside `unimodal`."""

from __future__ import annotations

import pytest

from specopt import DraftControlProblem, Unsupported, generate, solve


def test_every_action_is_seen() -> None:
    """Tests that one state has as many actions as resolutions times draft lengths."""
    one = generate("draft-control/random", states=1, resolutions=4, min_draft=2, max_draft=11)
    assert isinstance(one, DraftControlProblem)
    assert solve(one, "enumeration").stats["actions"] == 40


def test_several_states_are_refused() -> None:
    """Tests that the static methods refuse a chain of two states and name the methods that take it."""
    for method in ("unimodal", "enumeration"):
        with pytest.raises(Unsupported, match="has 2 states, the method takes one state; methods that can: policy"):
            solve(generate("draft-control/alternating"), method)
