"""Plans of prompt chunking: when each chunk is computed, uploaded, processed and downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from specopt.models.errors import InvalidInput
from specopt.models.prompt_chunking import ChunkTimes, PromptChunkingPlan, PromptChunkingProblem
from specopt.views.canvas import new_figure
from specopt.views.chart import MOST_MARKS, Chart, category, timeline
from specopt.views.terminal import MOST_ROWS, cut, line, table
from specopt.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Bar = tuple[str, float, float]  # row, start, end

BAR_WIDTH = 40

_SHADES = {"device": ("#7d8790", "#aab2b9"), "upload": ("#33658a", "#7fa6c2"), "GPU": ("#2f7d4f", "#86bd9b"),
           "download": ("#b5495b", "#d9949f")}  # fmt: skip


def print_plan(problem: PromptChunkingProblem, plan: PromptChunkingPlan, out: Console) -> None:
    """Print the chunks and when they pass through uplink, cloud and downlink, to scale."""
    times = problem.timeline(plan)
    scale = BAR_WIDTH / (times[-1].download[1] or 1.0)
    line(
        out, "chunks", f"{len(times):,} of {problem.prompt_tokens:,} tokens; u uploading, c in the cloud, d downloading"
    )
    view = table("  chunk", "tokens", "uploaded s", "processed s", "downloaded s")
    view.add_column("0" + f"{times[-1].download[1]:.3g} s".rjust(BAR_WIDTH - 1), no_wrap=True)
    for position, chunk in enumerate(times[:MOST_ROWS]):
        bar = [" "] * BAR_WIDTH
        cloud = (chunk.stages[0][0], chunk.stages[-1][1])
        for mark, (begin, end) in (("u", chunk.upload), ("c", cloud), ("d", chunk.download)):
            first = min(int(begin * scale), BAR_WIDTH - 1)
            for column in range(first, min(max(first + 1, round(end * scale)), BAR_WIDTH)):
                bar[column] = mark
        ends = (chunk.upload[1], cloud[1], chunk.download[1])
        view.add_row(str(position + 1), str(chunk.tokens), *(f"{end:.4f}" for end in ends), "".join(bar))
    out.print(view)
    cut(out, len(times), "chunks")


# ---------------------------------------------------------------------------- the timeline as a picture


def timeline_bars(times: list[ChunkTimes]) -> list[list[Bar]]:
    """Return the bars of each chunk: device (if it takes time), upload, each GPU, download."""
    bars = []
    for chunk in times:
        own: list[Bar] = [("device", *chunk.local)] if chunk.local[1] > chunk.local[0] else []
        own.append(("upload", *chunk.upload))
        own += [(f"GPU {index + 1}", *span) for index, span in enumerate(chunk.stages)]
        own.append(("download", *chunk.download))
        bars.append(own)
    return bars


def chunk_timeline(problem: PromptChunkingProblem, plans: Mapping[str, PromptChunkingPlan]) -> Figure:
    """Return a Gantt chart with a panel per plan, all on one time axis; shades alternate from chunk to chunk.

    Parameters
    ----------
    problem
        What is chunked.
    plans
        Plans by title.

    Raises
    ------
    InvalidInput
        If there is no plan, or one does not fit the prompt.
    MissingDependency
        If matplotlib is not installed.
    """
    if not plans:
        raise InvalidInput("plans: expected at least one")
    charts = {title: timeline_bars(problem.timeline(plan)) for title, plan in plans.items()}
    seconds = {title: problem.evaluate(plan).objective for title, plan in plans.items()}
    rows = list(dict.fromkeys(bar[0] for bars in charts.values() for bar in bars[0]))
    figure = new_figure(9.0, 0.6 + len(charts) * (0.6 + 0.2 * len(rows)))
    panels = figure.subplots(len(charts), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, bars) in zip(panels, charts.items(), strict=True):
        _draw(axes, bars, rows)
        count = len(bars)
        axes.axvline(1e3 * seconds[title], color="black", linewidth=0.9, linestyle=":")
        words = f"{title}: {count} chunk{'s' if count != 1 else ''}, first token after {1e3 * seconds[title]:.0f} ms"
        axes.set_title(words, loc="left", fontsize=10)
    panels[-1].set_xlim(0.0, 1e3 * max(seconds.values()) * 1.01)
    panels[-1].set_xlabel("time since the request arrived (ms)")
    return figure


def _draw(axes: Axes, bars: list[list[Bar]], rows: list[str]) -> None:
    for index, own in enumerate(bars):
        for row, start, end in own:
            shades = _SHADES[row.split()[0]]
            axes.barh(
                rows.index(row),
                1e3 * (end - start),
                left=1e3 * start,
                height=0.82,
                color=shades[index % 2],
                linewidth=0,
            )
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def charts(problem: PromptChunkingProblem, plan: PromptChunkingPlan) -> tuple[Chart, ...]:
    """Return the timeline of the chunks for a report."""
    times = problem.timeline(plan)
    rows = [
        {
            "resource": resource, "chunk": chunk, "tokens": times[chunk].tokens, "shade": ("odd", "even")[chunk % 2],
            "begin (s)": begin, "end (s)": end, "seconds": end - begin,
        }
        for chunk, bars in enumerate(timeline_bars(times))
        for resource, begin, end in bars
    ][:MOST_MARKS]  # fmt: skip
    shades = {"domain": ["odd", "even"], "range": ["var(--series-0)", "var(--series-5)"]}
    return (
        timeline(
            "When each chunk passes through each resource",
            "Colours alternate from chunk to chunk; they are counted from 0, as in files.",
            rows,
            lane="resource",
            colour=category("shade", legend=None, scale=shades),
            axis="seconds since the request arrived",
            closest=max(4, len(times)),
        ),
    )


VIEW = View(print_plan=print_plan, picture=lambda problem, plan: chunk_timeline(problem, {"plan": plan}), charts=charts)
