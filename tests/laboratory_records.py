"""What must hold of any laboratory record, recomputed from its raw numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.testbed.calibration import acceptance_rate, fit_passes
from specopt.testbed.explanation import explain

FLOPS = np.geomspace(1e3, 1e12, 100)
"""Where runtimes are compared."""

CLOSE_LOGITS = 1e-3
"""In single precision the order of sums may decide between logits that are closer than this, and nothing else may."""


def check_serving_latency(data: dict[str, Any]) -> None:
    """Check that problems follow from measurements, predictions from problems, and numbers from stages."""
    length, accepted = data["acceptance"]["length"], data["acceptance"]["accepted"]
    rate = min(max(acceptance_rate(accepted, length), 1e-3), 1 - 1e-3)
    for trial in data["trials"]:
        problem = ServingLatencyProblem.from_dict(data["problems"][trial["problem"]])
        plan = ServingLatencyPlan.from_dict(trial["plan"])
        assert problem.violations(plan) == []
        assert problem.mechanism == trial["label"]
        assert problem.acceptance_rate == rate
        passes = ("prefill", "decode" if trial["label"] == "autoregressive" else "verify")
        fitted = fit_passes(data["passes"]["verify"], passes).runtime
        np.testing.assert_allclose(problem.verify_runtime.seconds(4, FLOPS), fitted.seconds(4, FLOPS), rtol=1e-6)
        found = problem.evaluate(plan)
        predicted = trial["predicted"]["model"]
        assert predicted["total_seconds"] == pytest.approx(found.objective, rel=1e-9)
        assert predicted["communication_seconds"] == pytest.approx(found.terms["communication_seconds"], rel=1e-9)
        for measured in trial["measured"]:
            _check_run(problem, plan, measured)


def _check_run(problem: ServingLatencyProblem, plan: ServingLatencyPlan, measured: dict[str, Any]) -> None:
    stages = {side: np.array(measured[side]).reshape(-1, 5) for side in ("draft", "verify")}
    for number, steps in enumerate(measured["steps"]):
        assert (stages["verify"][:, 1] == number).sum() == steps
    assert measured["total_seconds"] >= stages["verify"][:, 3].max()
    assert measured["communication_seconds"] <= stages["verify"][:, 2].min()
    assert measured["accepted"] <= measured["drafted"]
    for difference in measured.get("differences", []):
        assert difference["margin"] <= CLOSE_LOGITS
    terms = explain(problem, plan, measured)
    assert terms.total == pytest.approx(measured["total_seconds"] - problem.evaluate(plan).objective, abs=1e-6)
    assert terms.between >= -1e-3  # nothing overlaps that the model says cannot
