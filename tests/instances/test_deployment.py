"""What a user has, as far as problems ask for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt import InvalidInput, generate
from specopt.api.generate import FAMILIES
from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Proposal
from specopt.instances.traces.trace import Trace
from specopt.models.pass_time import PassTime, pass_time


def passes(*contexts: float) -> PassTime:
    """Return passes measured with some cached tokens; without any, a line."""
    if not contexts:
        return pass_time(
            {"seconds_per_token": 1e-3, "overhead_seconds": 0.0},
            "it",
            decoder=None,
            all_logits=True,
        )
    ones = [1] * len(contexts)
    table = {
        "batch": ones,
        "new_tokens": ones,
        "cached_tokens": list(contexts),
        "seconds": [0.01] * len(contexts),
    }
    return pass_time({"table": table}, "it", decoder=None, all_logits=True)


@pytest.mark.parametrize(
    ("tokens", "contexts", "expected"),
    [
        (None, (), 0.0),
        (None, (0, 8, 64), 8),
        ((40, 20), (), 50),
        ((40, 20), (0, 100), 50),
        ((40, 20), (0, 30), 30),
        ((40, 20), (60, 90), 60),
    ],
)
def test_the_typical_context(
    tokens: tuple[int, int] | None, contexts: tuple[float, ...], expected: float
) -> None:
    """Tests that it is the trace's mean halfway through a response, within what was measured, or
    the middle of it.
    """
    trace = None
    if tokens is not None:
        inputs, outputs = (np.array([size - 2, size + 2]) for size in tokens)
        trace = Trace(arrival_seconds=np.zeros(2), input_tokens=inputs, output_tokens=outputs)
    known: Any = {"draft": None, "verify": None, "passes": None}
    assert Deployment(**known, trace=trace).context(passes(*contexts)) == expected


@pytest.mark.parametrize(
    ("given", "source"),
    [
        (
            {"verify_seconds": (-1.0, "--verify"), "draft_seconds_per_token": (0.1, "--draft")},
            "--verify",
        ),
        ({"states.uplink_bits_per_second": (-1.0, "--uplink")}, "--uplink"),
    ],
)
def test_a_refusal_says_where_the_value_is_from(
    given: dict[str, tuple[Any, str]], source: str
) -> None:
    """Tests that a value that is refused is traced to who gave it, inside a list, too."""
    name = "draft-control/alternating"
    with pytest.raises(InvalidInput, match=rf"got -1.0 \(from {source}\)$"):
        Proposal.of(generate(name), FAMILIES[name], given, {})
