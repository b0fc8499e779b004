"""Pictures of the pipeline: their times are the judge's, their text fits."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import specopt
from specopt.kinds.chart import PALETTE
from specopt.kinds.serving_latency.view import default_steps, pipeline_figure, text_gantt
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_latency.schedule import steps_per_batch

MECHANISMS: tuple[Literal["pipelined", "sequential", "autoregressive"], ...] = (
    "pipelined",
    "sequential",
    "autoregressive",
)


def make(**changes: Any) -> ServingLatencyProblem:
    """Return a small problem of the published family with short outputs."""
    problem = specopt.generate("serving-latency/paper-1", tasks=7, max_output=40, seed=4)
    assert isinstance(problem, ServingLatencyProblem)
    return dataclasses.replace(problem, **changes)


def plan_for(problem: ServingLatencyProblem, length: int = 3) -> ServingLatencyPlan:
    """Return a plan of three batches in no particular order."""
    if problem.mechanism == "autoregressive":
        length = 0
    return ServingLatencyPlan(
        speculation_length=length,
        batches=((4, 0), (1, 6, 2), (5, 3)),
        bandwidth_share=np.full(7, 1 / 7),
        mechanism="sequential" if problem.mechanism == "any" else None,
    )


def test_refusals() -> None:
    """Tests that an infeasible plan is refused with what it violates, and so are a width without
    room for the chart and an empty list of steps.
    """
    short, problem = make(max_speculation_length=2), make()
    with pytest.raises(specopt.InvalidInput, match="speculation_length"):
        text_gantt(short, plan_for(short), 1)
    with pytest.raises(specopt.InvalidInput, match="width: expected at least 40, got 20"):
        text_gantt(problem, plan_for(problem), 1, 20)
    with pytest.raises(specopt.InvalidInput, match="steps: expected at least one"):
        pipeline_figure(problem, plan_for(problem), steps=[])


@pytest.mark.parametrize("width", [40, 80, 100, 137])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_text_fits(mechanism: str, width: int) -> None:
    """Tests that the rows of the chart fill the width exactly, and title and axis stay within."""
    problem = make(mechanism=mechanism)
    plan = plan_for(problem)
    for step in default_steps(problem, plan):
        _, *rows, axis = text_gantt(problem, plan, step, width).splitlines()
        assert [row.partition("|")[0].strip() for row in rows] == (
            ["verify"] if mechanism == "autoregressive" else ["draft", "verify"]
        )
        assert {len(row) for row in rows} == {width}
        assert len(axis) <= width
        assert axis.strip().startswith("0") and axis.endswith("s")


def test_text_numbers_the_batches() -> None:
    """Tests that a wide chart names every batch, in pipeline order, in the verify row."""
    problem = make()
    row = next(
        line
        for line in text_gantt(problem, plan_for(problem), 2).splitlines()
        if line.startswith("verify")
    )
    assert [c for c in row if c.isdigit()] == ["1", "2", "3"]


def test_text_of_many_batches_fits() -> None:
    """Tests that a chart of more batches than columns keeps its width."""
    problem = specopt.generate("serving-latency/paper-1", tasks=120, max_output=4, seed=1)
    assert isinstance(problem, ServingLatencyProblem)
    plan = ServingLatencyPlan(
        speculation_length=1,
        batches=tuple((k,) for k in range(120)),
        bandwidth_share=np.full(120, 1 / 120),
    )
    for step in default_steps(problem, plan):
        assert max(map(len, text_gantt(problem, plan, step, 60).splitlines()[1:])) == 60


def test_default_steps() -> None:
    """Tests that the default steps are the prefill and one in the middle, or the prefill alone."""
    problem = make()
    first, middle = default_steps(problem, plan_for(problem))
    assert first == 1 < middle < max(steps_per_batch(problem, plan_for(problem)))
    short = make(max_output_tokens=1, output_tokens=[1] * 7)
    assert default_steps(short, plan_for(short)) == (1,)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_figure_has_a_bar_per_batch_and_stage(mechanism: str) -> None:
    """Tests that every panel shows every batch in every stage, on an axis from 0 to the end of the
    step.
    """
    problem = make(mechanism=mechanism)
    plan = plan_for(problem)
    charts = pipeline_figure(problem, plan).charts
    assert len(charts) == 2
    stages = 1 if mechanism == "autoregressive" else 2
    for chart in charts:
        assert len(chart.rows) == stages * 3
        x = chart.spec["layer"][0]["encoding"]["x"]
        assert x["scale"]["domain"] == [0, max(row["end (s)"] for row in chart.rows)]
        assert x["title"] in ("time since the step began (s)", "time since the step began (ms)")
        assert chart.title.split(" step")[0] in ("Prefill", "Decoding")


def test_figure_is_saved(tmp_path: Path) -> None:
    """Tests that the figure is written as PNG, PDF and SVG, and drawn into a page, with a bar for
    each row.
    """
    problem = make()
    picture = pipeline_figure(problem, plan_for(problem), steps=[2])
    for suffix, head in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<svg")):
        picture.save(tmp_path / f"pipeline.{suffix}")
        assert (tmp_path / f"pipeline.{suffix}").read_bytes().startswith(head)
    drawn = (tmp_path / "pipeline.svg").read_text()
    assert drawn.count('aria-roledescription="bar"') == len(picture.charts[0].rows)
    assert "var(" not in drawn and PALETTE["series-0"][0] in drawn
    picture.save(tmp_path / "dark.svg", dark=True)
    assert PALETTE["series-0"][1] in (tmp_path / "dark.svg").read_text()
    shown = picture._repr_html_()
    assert "var(--series-0)" in shown and "--series-0: #" in shown


def test_what_cannot_draw_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that without vl-convert the message says what to install."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    problem = make()
    with pytest.raises(specopt.MissingDependency, match=r"pip install 'specopt\[plot\]'"):
        pipeline_figure(problem, plan_for(problem)).save(tmp_path / "pipeline.png")
