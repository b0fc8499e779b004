"""Display of serving-latency plans, as text and as charts of the batches in each pipeline stage."""

from __future__ import annotations

from collections.abc import Sequence

from specopt.console.terminal import MAX_ROWS, Console, line, print_first, table
from specopt.kinds.chart import (
    MAX_MARKS,
    TOOLTIP,
    Chart,
    Picture,
    Row,
    category,
    gantt,
    layer,
    quantity,
    time_unit,
    timeline,
)
from specopt.kinds.view import View
from specopt.models.errors import InvalidInput
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_latency.schedule import Slot, step_schedule, steps_per_batch

_SHADES = "█▓▒░"
_MINIMUM_WIDTH = 40


def print_plan(problem: ServingLatencyProblem, plan: ServingLatencyPlan, out: Console) -> None:
    """Print a plan's mechanism, its speculation length, and its batches in pipeline order."""
    mechanism = problem.mechanism_of(plan)
    line(out, "mechanism", mechanism)
    if mechanism != "autoregressive":
        line(out, "speculation", f"{plan.speculation_length} draft tokens per step")
    line(out, "batches", f"{len(plan.batches)} in pipeline order, {problem.tasks} tasks")
    view = table("  batch", "tasks", "padded input", "padding", "steps")
    view.add_column("first tasks", no_wrap=True, overflow="ellipsis")
    steps = steps_per_batch(problem, plan)
    for position, batch in enumerate(plan.batches[:MAX_ROWS]):
        inputs = problem.input_tokens[list(batch)]
        padded = int(inputs.max())
        waste = 1.0 - float(inputs.sum()) / (padded * len(batch))
        names = " ".join(map(str, batch[:6])) + (" ..." if len(batch) > 6 else "")
        view.add_row(position + 1, len(batch), padded, f"{waste:.0%}", steps[position], names)
    print_first(out, view, len(plan.batches), "batches")


# ---------------------------------------------------------------------------- the pipeline


def default_steps(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> tuple[int, ...]:
    """Return the numbers of representative steps: the prefill and a step in the middle."""
    last = max(steps_per_batch(problem, plan))
    return (1,) if last == 1 else (1, (last + 2) // 2)


def text_gantt(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, step: int, width: int = 96
) -> str:
    """Return the timeline of one decoding step as text.

    The text has one row per pipeline stage and a time axis. The batches are numbered from 1.

    Parameters
    ----------
    problem
        Problem that the plan solves.
    plan
        Feasible plan.
    step
        Decoding step; step 1 is the prefill.
    width
        Width of the text in character columns. At least 40 columns are required.
    """
    if width < _MINIMUM_WIDTH:
        raise InvalidInput(f"width: expected at least {_MINIMUM_WIDTH}, got {width}")
    title, rows, end = _drawn(problem, plan, step)
    columns = width - len("verify ||")
    lines = [title]
    for stage in ("draft", "verify"):
        if bars := [row for row in rows if row["stage"] == stage]:
            lines.append(f"{stage:6} |{_bar(bars, end, columns)}|")
    lines.append(_axis(end, columns))
    return "\n".join(line.rstrip() for line in lines)


def pipeline_figure(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, steps: Sequence[int] | None = None
) -> Picture:
    """Return a Gantt chart of decoding steps, with one panel per step.

    Parameters
    ----------
    problem
        Problem that the plan solves.
    plan
        Feasible plan.
    steps
        Decoding steps; step 1 is the prefill. None selects the prefill and a step in the middle.
    """
    chosen = default_steps(problem, plan) if steps is None else tuple(steps)
    if not chosen:
        raise InvalidInput("steps: expected at least one decoding step, got none")
    return Picture([_step(problem, plan, step) for step in chosen], width=820)


def _step(problem: ServingLatencyProblem, plan: ServingLatencyPlan, step: int) -> Chart:
    title, rows, end = _drawn(problem, plan, step)
    labels = {
        "transform": [
            {
                "filter": (
                    f"datum.seconds > {0.006 * end!r} + {0.007 * end!r} * length(datum.batch + 1"
                    " + '')"
                )
            },
            {"calculate": "(datum['begin (s)'] + datum['end (s)']) / 2", "as": "middle"},
        ],
        "mark": {
            "type": "text",
            "color": "var(--paper)",
            "text": {
                "expr": (
                    f"datum.seconds < {0.14 * end!r} ? datum.batch + 1 + '' : 'batch ' +"
                    " (datum.batch + 1) + ', ' + datum.tasks + (datum.tasks == 1 ? ' task' : '"
                    " tasks')"
                )
            },
        },
        "encoding": {"y": category("stage"), "x": quantity("middle")},
    }
    colour = category("batch", legend=None)
    axis = "time since the step began"
    return gantt(title, rows, lane="stage", colour=colour, axis=axis, end=end, labels=labels)


def _rows(slots: Sequence[Slot], step: int, began: float = 0.0) -> list[Row]:
    """Return one chart row for each bar of a decoding step, which starts at time `began`."""
    return [
        {
            "stage": stage,
            "batch": slot.batch,
            "tasks": slot.tasks,
            "step": step,
            "begin (s)": began + span[0],
            "end (s)": began + span[1],
            "seconds": span[1] - span[0],
        }
        for slot in slots
        for stage, span in (("draft", slot.draft), ("verify", slot.verify))
        if span is not None
    ]


def _drawn(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, step: int
) -> tuple[str, list[Row], float]:
    """Return a tuple (title, rows, end) for a decoding step.

    The rows describe the bars of the step, and `end` is the time at which the step ends, in
    seconds.
    """
    slots = step_schedule(problem, plan, step)
    end = max(slot.verify[1] for slot in slots)
    last = max(steps_per_batch(problem, plan))
    name = "Prefill step" if step == 1 else "Decoding step"
    scale, unit = time_unit(end)
    count = f"{len(slots)} batch{'es' if len(slots) != 1 else ''}"
    title = (
        f"{name} ({step} of {last}), {problem.mechanism_of(plan)}, {count}, {end * scale:.4g}"
        f" {unit}"
    )
    return title, _rows(slots, step), end


# ---------------------------------------------------------------------------- text


def _bar(rows: Sequence[Row], end: float, columns: int) -> str:
    """Return a string that shows the batches of a pipeline stage over time.

    Consecutive batches have different shades. Each batch is labelled with its number if there is
    enough space.
    """
    cells = [" "] * columns
    for row in rows:
        first, last = (round(row[moment] / end * columns) for moment in ("begin (s)", "end (s)"))
        last = min(columns, max(last, first + 1))
        first = min(first, columns - 1)
        cells[first:last] = _SHADES[2 * (row["batch"] % 2)] * (last - first)
        label = str(row["batch"] + 1)
        if last - first >= len(label) + 2:
            middle = (first + last - len(label)) // 2
            cells[middle : middle + len(label)] = label
    return "".join(cells)


def _axis(end: float, columns: int) -> str:
    """Return the time axis as a string, with labels at round times and the time unit at the end."""
    scale, unit = time_unit(end)
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


def _round_step(minimum: float) -> float:
    """Return the smallest number of the form 1, 2 or 5 times 10^n that is at least `minimum`."""
    power = 1.0
    while power > minimum:
        power /= 10
    while True:
        for digit in (1, 2, 5):
            if digit * power >= minimum:
                return digit * power
        power *= 10


# ---------------------------------------------------------------------------- in a report


def charts(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> tuple[Chart, ...]:
    """Return one chart of the pipeline over the decoding steps and one chart of the batches."""
    rows: list[Row] = []
    began, last = 0.0, max(steps_per_batch(problem, plan))
    shown = 0
    for step in range(1, last + 1):
        slots = step_schedule(problem, plan, step)
        if shown and len(rows) + 2 * len(slots) > MAX_MARKS:
            break
        rows += _rows(slots, step, began)
        began += max(slot.verify[1] for slot in slots)
        shown = step
    pipeline = timeline(
        "Batch in each stage",
        "Starts with the prefill, after the uploads. Batches are numbered from 0, as in files."
        + ("" if shown == last else f" The first {shown:,} of {last:,} steps."),
        rows,
        lane="stage",
        colour=category("batch", legend={"symbolType": "square"}),
        axis="seconds since the prefill began",
        closest=max(4, 2 * shown),
    )
    return pipeline, _batches(problem, plan)


def _batches(problem: ServingLatencyProblem, plan: ServingLatencyPlan) -> Chart:
    rows = []
    for position, (batch, steps) in enumerate(
        zip(plan.batches, steps_per_batch(problem, plan), strict=True)
    ):
        inputs = problem.input_tokens[list(batch)]
        rows.append(
            {
                "batch": position,
                "tasks": len(batch),
                "steps": steps,
                "inputs": int(inputs.sum()),
                "padding": int(inputs.max()) * len(batch) - int(inputs.sum()),
            }
        )
    return Chart(
        title="Tokens of the prefill by batch",
        note="Padding fills up shorter inputs.",
        rows=rows,
        spec={
            "height": 180,
            "transform": [{"fold": ["inputs", "padding"], "as": ["part", "tokens"]}],
            **layer(
                {"type": "bar", "tooltip": TOOLTIP},
                x={"field": "batch", "type": "ordinal", "axis": {"labelAngle": 0}},
                y=quantity("tokens", axis={"format": "~s"}),
                color=category(
                    "part", title=None, scale={"range": ["var(--series-0)", "var(--series-7)"]}
                ),
                order={"field": "part"},
            ),
        },
    )


VIEW = View(
    print_plan=print_plan,
    columns={
        "l": lambda plan: plan.speculation_length,
        "batches": lambda plan: len(plan.batches),
    },
    charts=charts,
)
