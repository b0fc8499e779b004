"""Long runs that look like a trace."""

from __future__ import annotations

import numpy as np
import pytest

from specopt import InvalidInput
from specopt.instances.traces import Trace
from specopt.instances.traces.workload import prompt_workload, verification_workload

RNG = np.random.default_rng(5)
TRACE = Trace(
    arrival_seconds=np.arange(2000) / 8.0,
    input_tokens=np.clip(np.rint(RNG.lognormal(np.log(700.0), 0.9, 2000)), 1, None).astype(np.int64),
    output_tokens=np.clip(np.rint(RNG.lognormal(np.log(150.0), 0.4, 2000)), 1, None).astype(np.int64),
)


def test_verification_workload() -> None:
    """Tests that the lognormal that the trace was drawn from is found again, and parameters pass through."""
    found = verification_workload(TRACE, window=6)
    assert found.prompt_median_tokens == pytest.approx(700.0, rel=0.08)
    assert found.prompt_sigma == pytest.approx(0.9, rel=0.08)
    assert found.response_median_tokens == pytest.approx(150.0, rel=0.05)
    assert found.response_sigma == pytest.approx(0.4, rel=0.08)
    assert found.most_prompt_tokens == TRACE.input_tokens.max()
    assert found.most_response_tokens == TRACE.output_tokens.max()
    assert found.window == 6


def test_prompt_workload() -> None:
    """Tests that prompts are drawn from the trace's own, and that the rate is the trace's unless one is given."""
    found = prompt_workload(TRACE, "cnn-dm", pipeline_length=2)
    assert found.requests_per_second == pytest.approx(8.0)
    assert found.output_tokens == round(TRACE.output_tokens.mean())
    assert found.pipeline_length == 2
    drawn = found.lengths(500, np.random.default_rng(0))
    assert set(drawn.tolist()) <= set(TRACE.input_tokens.tolist())
    assert prompt_workload(TRACE, requests_per_second=3.0).requests_per_second == 3.0
    with pytest.raises(InvalidInput, match="more than one time"):
        prompt_workload(TRACE.window(0, 1))
