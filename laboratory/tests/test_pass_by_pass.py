"""Serving latency predicted pass by pass, compared with sums by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.three_tasks import three_tasks

from specopt.models.serving_data import Mechanism
from specopt.models.serving_latency.schedule import stage_seconds
from testbed.pass_by_pass import pass_seconds, predict_by_passes, steps_of


def passes(scale: float) -> dict[str, list[Any]]:
    """Return passes with known seconds per sequence: 10 for one token, 30 for two, and 40 for
    four.
    """
    rows = [
        (("decode" if new == 1 else "verify"), batch, new, scale * seconds * batch)
        for batch in (1, 4)
        for new, seconds in ((1, 10.0), (2, 30.0), (4, 40.0))
    ]
    rows.append(("prefill", 1, 2, 999.0))
    columns = [list(column) for column in zip(*rows, strict=True)]
    return dict(zip(("phase", "batch", "new_tokens", "seconds_median"), columns, strict=True))


def test_passes_between_measured_ones_are_interpolated() -> None:
    """Tests that batch and new tokens are interpolated, and that values are constant beyond the
    grid.
    """
    assert pass_seconds(passes(1.0), 1, 1) == 10.0
    assert pass_seconds(passes(1.0), 2, 2) == pytest.approx(60.0)
    assert pass_seconds(passes(1.0), 1, 3) == pytest.approx(35.0)
    assert pass_seconds(passes(1.0), 9, 8) == 160.0


def test_steps_are_those_of_the_slowest_task() -> None:
    """Tests that the number of steps is that of tokens with almost no acceptance, a third of it
    with almost full acceptance, and between them otherwise.
    """
    random = np.random.default_rng(0)
    assert steps_of(*three_tasks("pipelined", rate=1e-9, longest=6), random) == [6, 6]
    assert steps_of(*three_tasks("pipelined", rate=1 - 1e-9, longest=6), random) == [2, 2]
    drawn = np.array(
        [steps_of(*three_tasks("pipelined", rate=0.5, longest=6), random) for _ in range(300)]
    )
    assert drawn.min() >= 2
    assert drawn.max() <= 6
    assert drawn[:, 0].mean() > drawn[:, 1].mean() - 0.2  # two tasks wait for the slower


@pytest.mark.parametrize("mechanism", ["pipelined", "sequential", "autoregressive"])
def test_total_is_the_sum_by_hand(mechanism: Mechanism) -> None:
    """Tests that without acceptance a plan takes uploads, the first step of the model, and five
    rounds of measured passes.

    A round of two drafts is a draft pass of two tokens and one of one, and a verification of three.
    """
    problem, plan = three_tasks(mechanism, rate=1e-9, longest=6)
    draft, verify = passes(1e-3), passes(2e-3)
    first = [stage_seconds(problem, plan, batch, 1) for batch in plan.batches]
    if mechanism == "autoregressive":
        rounds = [(0.0, 2e-3 * 20.0), (0.0, 2e-3 * 10.0)]
    else:
        rounds = [(1e-3 * 80.0, 2e-3 * 70.0), (1e-3 * 40.0, 2e-3 * 35.0)]

    def pipeline(stages: list[tuple[float, float]]) -> float:
        (d1, v1), (d2, v2) = stages
        return d1 + max(v1, d2) + v2 if mechanism == "pipelined" else d1 + v1 + d2 + v2

    expected = (
        problem.evaluate(plan).terms["communication_seconds"]
        + pipeline(first)
        + 5 * pipeline(rounds)
    )
    assert predict_by_passes(problem, plan, draft, verify) == pytest.approx(expected)
