"""Display of continuous-serving plans, as text and as a chart of batches over time."""

from __future__ import annotations

import numpy as np

from specopt.console.terminal import MAX_ROWS, Console, line, print_first, table
from specopt.kinds.chart import MAX_MARKS, Chart, Row, quantity, timeline
from specopt.kinds.view import View
from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
)
from specopt.models.continuous_serving.steps import Stretch


def stretches(problem: ContinuousServingProblem, plan: ContinuousServingPlan) -> list[Stretch]:
    """Return the time intervals between the events of a plan.

    The list is empty if there are too many intervals to draw. If output lengths are predicted, the
    first sample of the lengths is used.
    """
    return problem.played(plan)[0].stretches


def print_plan(
    problem: ContinuousServingProblem, plan: ContinuousServingPlan, out: Console
) -> None:
    """Print the batches of a plan over time.

    If the objective is mean latency, also print the latency that 95 % of the tasks do not exceed.
    """
    if problem.objective == "mean_latency":
        line(out, "95 % of tasks", f"within {np.quantile(problem.latencies(plan), 0.95):.6g} s")
    found = stretches(problem, plan)
    line(out, "mechanism", problem.mechanism_of(plan))
    steps = f"{found[-1].last_step} decoding steps" if found else "too many decoding steps to list"
    line(out, "phases", f"{len(plan.phases)}, {problem.tasks} tasks, {steps}")
    view = table("  from step", "seconds", "tasks")
    view.add_column("tasks per batch, and draft tokens", no_wrap=True, overflow="ellipsis")
    for stretch in found[:MAX_ROWS]:
        runs = " ".join(
            f"{size}x{length}" for size, length in zip(stretch.sizes, stretch.lengths, strict=True)
        )
        view.add_row(
            stretch.first_step,
            f"{stretch.end - stretch.start:.4g}",
            sum(stretch.sizes),
            runs,
        )
    print_first(out, view, len(found), "stretches")


def charts(problem: ContinuousServingProblem, plan: ContinuousServingPlan) -> tuple[Chart, ...]:
    """Return a chart that shows the batches of a plan over time."""
    rows: list[Row] = []
    found = stretches(problem, plan)
    for stretch in found:
        rows += [
            {
                "place": place,
                "tasks": size,
                "draft tokens": length,
                "first step": stretch.first_step,
                "begin (s)": stretch.start,
                "end (s)": stretch.end,
                "seconds": stretch.end - stretch.start,
            }
            for place, (size, length) in enumerate(zip(stretch.sizes, stretch.lengths, strict=True))
        ]
        if len(rows) > MAX_MARKS:
            break
    if not rows:
        return ()
    return (
        timeline(
            "Number of tasks in each batch of a step",
            "From event to event: a task finishes or joins, or the plan forms new batches.",
            rows,
            lane="place",
            colour=quantity("tasks"),
            axis="seconds since the earliest arrival",
            closest=max(4, len(found)),
        ),
    )


VIEW = View(
    print_plan=print_plan,
    columns={
        "l": lambda plan: plan.speculation_length,
        "phases": lambda plan: len(plan.phases),
    },
    charts=charts,
)
