"""Plans of continuous serving, shown: text, picture, chart and rows hold what the judge played."""

from __future__ import annotations

import dataclasses
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from specopt import ContinuousServingPlan, ContinuousServingProblem, generate, solve
from specopt.kinds import kind_of
from specopt.kinds.continuous_serving.view import VIEW, charts, stretches


def test_plans_are_shown(tmp_path: Path) -> None:
    """Tests that phases have their text, their picture, their chart and their rows."""
    problem = generate("continuous-serving/paper-1", tasks=6, max_input=40, max_output=24, seed=1)
    assert isinstance(problem, ContinuousServingProblem)
    free = dataclasses.replace(problem, output_lengths="known")
    plan = solve(free, "rebatching").plan
    assert isinstance(plan, ContinuousServingPlan)
    out = StringIO()
    VIEW.print_plan(free, plan, Console(file=out, width=120))
    assert f"{len(plan.phases)}, 6 tasks" in out.getvalue()
    mean = dataclasses.replace(free, objective="mean_latency")
    VIEW.print_plan(mean, plan, Console(file=out, width=120))
    within = np.quantile(mean.latencies(plan), 0.95)
    assert f"within {within:.6g} s" in out.getvalue() and within > mean.evaluate(plan).objective
    found = stretches(free, plan)
    assert found[-1].end == pytest.approx(free.evaluate(plan).objective)
    assert sum(found[0].sizes) == 6 and found[0].first_step == 1
    (chart,) = charts(free, plan)
    assert len(chart.rows) == sum(len(stretch.sizes) for stretch in found)
    free.plot(plan).save(tmp_path / "phases.svg")
    assert (tmp_path / "phases.svg").read_text().count('aria-roledescription="bar"') == len(
        chart.rows
    )
    rows = list(kind_of(free).rows(plan))
    assert len(rows) == 6 * len(plan.phases) and len({tuple(row) for row in rows}) == 1
