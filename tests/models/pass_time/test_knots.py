"""The piecewise-linear delay of a cloud batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import prompt_chunking as naive

from specopt import CloudDelay
from specopt.instances.prompt_chunking.workload import FIGURE_1
from specopt.kinds.prompt_chunking.strategies import cloud_delays


@given(cloud_delays(), st.floats(0, 60))
def test_equals_naive(delay: dict[str, list[float]], tokens: float) -> None:
    """Tests that g between, left and right of the knots is what rational arithmetic gives."""
    g = CloudDelay(**delay)
    expected = float(naive.delay({"cloud_delay": delay}, tokens))  # type: ignore[arg-type]
    assert g.at(tokens) == pytest.approx(expected, rel=1e-12)


def test_figure_1() -> None:
    """Tests that the calibrated delay passes through its knots and goes on with its last slope."""
    g = FIGURE_1
    assert [g.at(float(t)) for t in g.tokens] == pytest.approx(g.seconds.tolist(), rel=1e-15)
    assert g.at(3000.0) == pytest.approx(0.28 + 1000 * (0.28 - 0.071217721) / 1488)
    assert np.all(np.diff(g.slopes) > 0)


def test_equality_is_by_value() -> None:
    """Tests that two delays with the same knots are equal."""
    delay: Any = CloudDelay
    first = delay(tokens=[0, 1], seconds=[0, 1])
    assert first == delay(tokens=[0.0, 1.0], seconds=[0.0, 1.0])
    assert first != delay(tokens=[0, 2], seconds=[0, 1])
