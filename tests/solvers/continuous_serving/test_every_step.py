"""The search over every step of continuous serving."""

from __future__ import annotations

import dataclasses

import pytest
from helpers.untyped import generate, solve

from specopt import Unsupported


def test_many_steps_are_refused() -> None:
    """Tests that one task with more steps than Python lets a function call itself is left to other
    methods.
    """
    problem = dataclasses.replace(
        generate("continuous-serving/paper-1", tasks=1, seed=1),
        mechanism="autoregressive",
        output_lengths="known",
        output_tokens=[900],
        max_output_tokens=None,
    )
    with pytest.raises(Unsupported, match="900 decoding steps"):
        solve(problem, "every-step")
    assert solve(problem, time_limit=1.0).plan is not None
