"""Plans of serving latency: as text, and which batch each stage works on during a decoding step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from specopt.models.errors import InvalidInput
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_schedule import Slot, step_schedule, steps_per_batch
from specopt.views.canvas import new_figure
from specopt.views.chart import MOST_MARKS, Chart, category, quantity, timeline
from specopt.views.rebatched import phase_charts, phases_figure, print_phases
from specopt.views.terminal import MOST_ROWS, cut, line, table
from specopt.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Span = tuple[int, float, float]  # batch, start, end

_SHADES = "█▓▒░"
_COLOURS = ("#33658a", "#b5495b", "#2f7d4f", "#8a6d1b", "#6a4c93", "#1d7a85")  # all dark enough for white labels
_MINIMUM_WIDTH = 40
_FEW_BATCHES = 8  # so few have room for words in their bars


def print_plan(problem: ServingLatencyProblem, plan: ServingLatencyPlan, out: Console) -> None:
    """Print the batches in pipeline order, or the phases; of a mean latency also what 95 % of the tasks take."""
    if problem.objective == "mean_latency":
        line(out, "95 % of tasks", f"within {np.quantile(problem.latencies(plan), 0.95):.6g} s")
    if plan.phases:
        print_phases(problem, plan, out)
        return
    mechanism = problem.mechanism_of(plan)
    line(out, "mechanism", mechanism)
    if mechanism != "autoregressive":
        line(out, "speculation", f"{plan.speculation_length} draft tokens per step")
    line(out, "batches", f"{len(plan.batches)} in pipeline order, {problem.tasks} tasks")
    view = table("  batch", "tasks", "padded input", "padding", "steps")
    view.add_column("first tasks", no_wrap=True, overflow="ellipsis")
    steps = steps_per_batch(problem, plan)
    for position, batch in enumerate(plan.batches[:MOST_ROWS]):
        inputs = problem.input_tokens[list(batch)]
        padded = int(inputs.max())
        waste = 1.0 - float(inputs.sum()) / (padded * len(batch))
        names = " ".join(map(str, batch[:6])) + (" ..." if len(batch) > 6 else "")
        view.add_row(str(position + 1), str(len(batch)), str(padded), f"{waste:.0%}", str(steps[position]), names)
    out.print(view)
    cut(out, len(plan.batches), "batches")


# ---------------------------------------------------------------------------- the pipeline


def default_steps(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> tuple[int, ...]:
    """Return the steps worth a look: the prefill, and a decoding step in the middle."""
    last = max(steps_per_batch(problem, plan))
    return (1,) if last == 1 else (1, (last + 2) // 2)


def text_gantt(problem: ServingLatencyProblem, plan: ServingLatencyPlan, step: int, width: int = 96) -> str:
    """Return one decoding step as text: a row per stage, batches numbered from 1, an axis below.

    Parameters
    ----------
    problem, plan
        What to show; the plan must be feasible.
    step
        Decoding step from 1, the prefill, on.
    width
        Columns to fill, at least 40.
    """
    if width < _MINIMUM_WIDTH:
        raise InvalidInput(f"width: expected at least {_MINIMUM_WIDTH}, got {width}")
    slots = step_schedule(problem, plan, step)
    end = max(slot.verify[1] for slot in slots)
    columns = width - len("verify ||")
    lines = [_title(problem, plan, slots, step, end)]
    drafts, verifies = _spans(slots)
    if drafts:
        lines.append(f"draft  |{_bar(drafts, end, columns)}|")
    lines.append(f"verify |{_bar(verifies, end, columns)}|")
    lines.append(_axis(end, columns))
    return "\n".join(line.rstrip() for line in lines)


def pipeline_figure(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, steps: Sequence[int] | None = None
) -> Figure:
    """Return a Gantt chart of decoding steps, one panel per step; of a rebatched plan the tasks in service over time.

    Parameters
    ----------
    problem, plan
        What to show; the plan must be feasible.
    steps
        Decoding steps from 1, the prefill, on; None: the prefill and a step in the middle.

    Raises
    ------
    MissingDependency
        If matplotlib is not installed.
    """
    if plan.phases:
        return phases_figure(problem, plan)
    chosen = default_steps(problem, plan) if steps is None else tuple(steps)
    if not chosen:
        raise InvalidInput("steps: expected at least one decoding step, got none")
    figure = new_figure(10.0, 0.5 + 1.75 * len(chosen))
    panels = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    for axes, step in zip(panels, chosen, strict=True):
        _draw(axes, problem, plan, step)
    return figure


# ---------------------------------------------------------------------------- both


def _spans(slots: Sequence[Slot]) -> tuple[list[Span], list[Span]]:
    drafts = [(slot.batch, *slot.draft) for slot in slots if slot.draft is not None]
    return drafts, [(slot.batch, *slot.verify) for slot in slots]


def _title(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, slots: Sequence[Slot], step: int, end: float
) -> str:
    last = max(steps_per_batch(problem, plan))
    name = "Prefill step" if step == 1 else "Decoding step"
    scale, unit = _unit(end)
    count = f"{len(slots)} batch{'es' if len(slots) != 1 else ''}"
    return f"{name} ({step} of {last}), {problem.mechanism_of(plan)}, {count}, {end * scale:.4g} {unit}"


def _unit(end: float) -> tuple[float, str]:
    return (1.0, "s") if end >= 2.0 else (1e3, "ms") if end >= 2e-3 else (1e6, "µs")


# ---------------------------------------------------------------------------- text


def _bar(spans: Sequence[Span], end: float, columns: int) -> str:
    """Return a row of cells: shades alternate from batch to batch, numbers where they fit."""
    cells = [" "] * columns
    for batch, start, stop in spans:
        first, last = (round(moment / end * columns) for moment in (start, stop))
        last = min(columns, max(last, first + 1))
        first = min(first, columns - 1)
        cells[first:last] = _SHADES[2 * (batch % 2)] * (last - first)
        label = str(batch + 1)
        if last - first >= len(label) + 2:
            middle = (first + last - len(label)) // 2
            cells[middle : middle + len(label)] = label
    return "".join(cells)


def _axis(end: float, columns: int) -> str:
    """Return the axis: round moments under their columns, the unit at the end."""
    scale, unit = _unit(end)
    step = _round_step(end * scale / 6)
    cells = [" "] * (columns + 1)
    moment = 0
    while moment * step <= end * scale:
        text = f"{moment * step:g}"
        column = round(moment * step / (end * scale) * columns)
        if (moment + 1) * step > end * scale:
            text += f" {unit}"
        column = min(column, columns + 1 - len(text))
        cells[column : column + len(text)] = text
        moment += 1
    return " " * len("verify |") + "".join(cells)


def _round_step(least: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is at least the argument."""
    power = 1.0
    while power > least:
        power /= 10
    while True:
        for digit in (1, 2, 5):
            if digit * power >= least:
                return digit * power
        power *= 10


# ---------------------------------------------------------------------------- matplotlib


def _draw(axes: Axes, problem: ServingLatencyProblem, plan: ServingLatencyPlan, step: int) -> None:
    slots = step_schedule(problem, plan, step)
    end = max(slot.verify[1] for slot in slots)
    scale, unit = _unit(end)
    rows = (["draft"] if slots[0].draft is not None else []) + ["verify"]
    for height, row in enumerate(rows):
        for slot in slots:
            span = slot.draft if row == "draft" else slot.verify
            assert span is not None, "all batches are drafted, or none"
            _draw_bar(axes, height, slot, (span[0] * scale, span[1] * scale), end * scale, len(slots) <= _FEW_BATCHES)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.45, -0.55)  # the draft stage on top
    axes.set_xlim(0.0, end * scale)
    axes.set_xlabel(f"time since the step began ({unit})")
    axes.set_title(_title(problem, plan, slots, step, end), loc="left", fontsize=10)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _draw_bar(axes: Axes, height: int, slot: Slot, span: tuple[float, float], end: float, long_labels: bool) -> None:
    start, stop = span
    share = (stop - start) / end
    number = f"{slot.batch + 1}"
    axes.barh(
        height,
        stop - start,
        left=start,
        height=0.8,
        color=_COLOURS[slot.batch % len(_COLOURS)],
        edgecolor="white",
        linewidth=0.8 if share > 0.005 else 0.0,  # the edges of a sliver would hide it
    )
    if long_labels and share > 0.08:
        label = f"batch {number}\n{slot.tasks} task{'s' if slot.tasks != 1 else ''}"
    else:
        label = number if share > 0.006 + 0.007 * len(number) else ""
    axes.text((start + stop) / 2, height, label, ha="center", va="center", fontsize=8, color="white")


# ---------------------------------------------------------------------------- in a report


def charts(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> tuple[Chart, ...]:
    """Return the pipeline over all decoding steps, and what the batches are; of a rebatched plan the latter."""
    if plan.phases:
        return phase_charts(problem, plan)
    rows: list[dict[str, Any]] = []
    began, last = 0.0, max(steps_per_batch(problem, plan))
    shown = 0
    for step in range(1, last + 1):
        slots = step_schedule(problem, plan, step)
        if shown and len(rows) + 2 * len(slots) > MOST_MARKS:
            break
        for slot in slots:
            for stage, span in (("draft", slot.draft), ("verify", slot.verify)):
                if span is not None:
                    begin, end = (began + moment for moment in span)
                    rows.append(
                        {
                            "stage": stage, "batch": slot.batch, "tasks": slot.tasks, "step": step,
                            "begin (s)": begin, "end (s)": end, "seconds": end - begin,
                        }
                    )  # fmt: skip
        began += max(slot.verify[1] for slot in slots)
        shown = step
    pipeline = timeline(
        "Which batch each stage works on",
        "From the prefill on, step after step; uploads come before. Batches are counted from 0, as in files."
        + ("" if shown == last else f" The first {shown:,} of {last:,} steps."),
        rows,
        lane="stage",
        colour={"field": "batch", "type": "nominal", "sort": None, "legend": {"symbolType": "square"}},
        axis="seconds since the prefill began",
        closest=max(4, 2 * shown),
    )
    return pipeline, _batches(problem, plan)


def _batches(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> Chart:
    rows = []
    for position, (batch, steps) in enumerate(zip(plan.batches, steps_per_batch(problem, plan), strict=True)):
        inputs = problem.input_tokens[list(batch)]
        for part, tokens in (
            ("inputs", int(inputs.sum())),
            ("padding", int(inputs.max()) * len(batch) - int(inputs.sum())),
        ):
            rows.append({"batch": position, "tasks": len(batch), "steps": steps, "part": part, "tokens": tokens})
    return Chart(
        title="Tokens of the prefill by batch",
        note="Padding is what shorter inputs are filled up with.",
        rows=rows,
        spec={
            "height": 180,
            "mark": {"type": "bar", "tooltip": {"content": "data"}},
            "encoding": {
                "x": {"field": "batch", "type": "ordinal", "axis": {"labelAngle": 0}},
                "y": quantity("tokens", axis={"format": "~s"}),
                "color": category("part", title=None, scale={"range": ["var(--series-0)", "var(--series-7)"]}),
                "order": {"field": "part"},
            },
        },
    )


def _count(plan: ServingLatencyPlan) -> str:
    return f"{len(plan.phases)} phases" if plan.phases else str(len(plan.batches))


VIEW = View(
    print_plan=print_plan,
    columns={"l": lambda plan: str(plan.speculation_length), "batches": _count},
    picture=pipeline_figure,
    charts=charts,
)
