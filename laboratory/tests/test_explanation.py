"""Causes of time that was not predicted: runs generated from the model, with one change at a
time.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.three_tasks import three_tasks

from specopt.models.serving_data import Mechanism
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_latency.schedule import step_schedule, steps_per_batch
from testbed.explanation import explain, undisturbed_seconds


def as_predicted(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> dict[str, Any]:
    """Return the measurements if everything went as the model predicts."""
    found = problem.evaluate(plan)
    stages: dict[str, list[list[float]]] = {"draft": [], "verify": []}
    steps = steps_per_batch(problem, plan)
    for step in range(1, max(steps) + 1):
        for slot in step_schedule(problem, plan, step):
            stages["verify"].append(
                [step, slot.batch, *slot.verify, slot.verify[1] - slot.verify[0]]
            )
            if slot.draft is not None:
                stages["draft"].append(
                    [step, slot.batch, *slot.draft, slot.draft[1] - slot.draft[0]]
                )
    return {
        "total_seconds": found.objective,
        "communication_seconds": found.terms["communication_seconds"],
        "steps": steps,
        **stages,
    }


@pytest.mark.parametrize("mechanism", ["pipelined", "sequential", "autoregressive"])
def test_nothing_is_left_where_everything_went_as_predicted(mechanism: Mechanism) -> None:
    """Tests that all terms are 0 for a run that equals the prediction of the model."""
    problem, plan = three_tasks(mechanism)
    terms = explain(problem, plan, as_predicted(problem, plan))
    for name in ("communication", "steps", "passes", "between", "waiting", "total"):
        assert getattr(terms, name) == pytest.approx(0.0, abs=1e-9), name


@pytest.mark.parametrize("mechanism", ["pipelined", "sequential", "autoregressive"])
def test_undisturbed_seconds_leave_out_what_others_took(mechanism: Mechanism) -> None:
    """Tests that only the processor seconds of stages are used if they waited for their
    processor.
    """
    problem, plan = three_tasks(mechanism)
    run = as_predicted(problem, plan)
    for side in ("draft", "verify"):
        for row in run[side]:
            row[3] += 7.0
    assert undisturbed_seconds(run, mechanism) == pytest.approx(problem.evaluate(plan).objective)


def test_each_cause_has_its_term() -> None:
    """Tests that a late upload, slow passes, messages and a lost processor each appear in the right
    term, and that terms add up.
    """
    problem, plan = three_tasks("sequential")
    run = as_predicted(problem, plan)
    run["communication_seconds"] += 0.5
    for row in run["verify"]:
        row[3] += 0.25
        row[4] += 0.05
    run["total_seconds"] += 0.5 + 0.25 * len(run["verify"]) + 0.125
    terms = explain(problem, plan, run)
    slow = 0.25 * len(run["verify"])
    assert terms.communication == pytest.approx(0.5)
    assert terms.steps == pytest.approx(0.0, abs=1e-9)
    assert terms.passes == pytest.approx(slow)
    assert terms.waiting == pytest.approx(0.8 * slow)
    assert terms.between == pytest.approx(0.125)
    assert terms.total == pytest.approx(run["total_seconds"] - problem.evaluate(plan).objective)


def test_a_batch_that_needs_more_steps_is_told_as_such() -> None:
    """Tests that the time of an additional step, at the speed of the model, appears only in the
    term of steps.
    """
    problem, plan = three_tasks("autoregressive")
    run = as_predicted(problem, plan)
    fewer = problem.evaluate(plan).objective
    longer = ServingLatencyProblem.from_dict({**problem.to_dict(), "output_tokens": [4, 6, 13]})
    more = as_predicted(longer, plan)
    terms = explain(problem, plan, more)
    assert more["steps"][1] == run["steps"][1] + 1
    assert terms.steps == pytest.approx(longer.evaluate(plan).objective - fewer)
    assert (terms.passes, terms.between) == pytest.approx((0.0, 0.0), abs=1e-9)
