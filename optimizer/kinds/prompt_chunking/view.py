"""Display of prompt-chunking plans.

For each chunk, the display shows the times of device computation, upload, cloud processing and
download.
"""

from __future__ import annotations

from collections.abc import Mapping

from specopt.console.terminal import MAX_ROWS, Console, line, print_first, table
from specopt.kinds.chart import MAX_MARKS, Chart, Picture, Row, category, gantt, layer, timeline
from specopt.kinds.view import View
from specopt.models.errors import InvalidInput
from specopt.models.prompt_chunking.problem import (
    ChunkTimes,
    PromptChunkingPlan,
    PromptChunkingProblem,
)

Bar = tuple[str, float, float]  # row, start, end

BAR_WIDTH = 40
"""Width of a printed bar, in character columns."""


def print_plan(problem: PromptChunkingProblem, plan: PromptChunkingPlan, out: Console) -> None:
    """Print the chunks with bars that show their upload, cloud and download times to scale."""
    times = problem.timeline(plan)
    scale = BAR_WIDTH / (times[-1].download[1] or 1.0)
    line(
        out,
        "chunks",
        f"{len(times):,} of {problem.prompt_tokens:,} tokens; u uploading, c in the cloud, d"
        " downloading",
    )
    view = table("  chunk", "tokens", "uploaded s", "processed s", "downloaded s")
    view.add_column("0" + f"{times[-1].download[1]:.3g} s".rjust(BAR_WIDTH - 1), no_wrap=True)
    for position, chunk in enumerate(times[:MAX_ROWS]):
        bar = [" "] * BAR_WIDTH
        cloud = (chunk.stages[0][0], chunk.stages[-1][1])
        for mark, (begin, end) in (("u", chunk.upload), ("c", cloud), ("d", chunk.download)):
            first = min(int(begin * scale), BAR_WIDTH - 1)
            for column in range(first, min(max(first + 1, round(end * scale)), BAR_WIDTH)):
                bar[column] = mark
        ends = (chunk.upload[1], cloud[1], chunk.download[1])
        view.add_row(position + 1, chunk.tokens, *(f"{end:.4f}" for end in ends), "".join(bar))
    print_first(out, view, len(times), "chunks")


# ------------------------------------------------------------------------------ timeline as a chart


def timeline_bars(times: list[ChunkTimes]) -> list[list[Bar]]:
    """Return a list of bars for each chunk.

    There are bars for the upload, the GPUs and the download, and for the device if it takes any
    time.
    """
    bars = []
    for chunk in times:
        own = [("device", *chunk.local)] if chunk.local[1] > chunk.local[0] else []
        own.append(("upload", *chunk.upload))
        own += [(f"GPU {index + 1}", *span) for index, span in enumerate(chunk.stages)]
        own.append(("download", *chunk.download))
        bars.append(own)
    return bars


def chunk_timeline(
    problem: PromptChunkingProblem, plans: Mapping[str, PromptChunkingPlan]
) -> Picture:
    """Return a Gantt chart with one panel per plan and a common time axis.

    Colours alternate between chunks.

    Parameters
    ----------
    problem
        Problem that all plans solve.
    plans
        Plans by title.

    Raises
    ------
    InvalidInput
        If there is no plan, or if the chunks of a plan do not sum to the prompt.
    """
    if not plans:
        raise InvalidInput("plans: expected at least one plan, got none")
    seconds = [problem.evaluate(plan).objective for plan in plans.values()]
    charts = []
    for (title, plan), first in zip(plans.items(), seconds, strict=True):
        count = f"{len(plan.chunks)} chunk{'s' if len(plan.chunks) != 1 else ''}"
        charts.append(
            gantt(
                f"{title}: {count}, first token after {1e3 * first:.0f} ms",
                _rows(problem, plan),
                lane="resource",
                colour=_COLOUR,
                end=1.01 * max(seconds),
                axis="time since the request arrived",
                first=layer({"type": "rule", "strokeDash": [2, 2]}, x={"datum": first}),
            )
        )
    return Picture(charts)


def charts(problem: PromptChunkingProblem, plan: PromptChunkingPlan) -> tuple[Chart, ...]:
    """Return a timeline of the chunks, as shown in a report."""
    return (
        timeline(
            "Times of each chunk on each resource",
            "Colours alternate between chunks, which are numbered from 0, as in files.",
            _rows(problem, plan)[:MAX_MARKS],
            lane="resource",
            colour=_COLOUR,
            axis="seconds since the request arrived",
            closest=max(4, len(plan.chunks)),
        ),
    )


_COLOUR = category(
    "shade",
    legend=None,
    scale={"domain": ["odd", "even"], "range": ["var(--series-0)", "var(--series-5)"]},
)


def _rows(problem: PromptChunkingProblem, plan: PromptChunkingPlan) -> list[Row]:
    times = problem.timeline(plan)
    return [
        {
            "resource": resource,
            "chunk": chunk,
            "tokens": times[chunk].tokens,
            "shade": ("odd", "even")[chunk % 2],
            "begin (s)": begin,
            "end (s)": end,
            "seconds": end - begin,
        }
        for chunk, bars in enumerate(timeline_bars(times))
        for resource, begin, end in bars
    ]


VIEW = View(print_plan=print_plan, charts=charts)
