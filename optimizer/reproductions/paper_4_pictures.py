"""Pictures of the reproduction of paper 4: Figures 1 and 6-12, printed numbers as crosses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from specopt.instances.prompt_chunking.workload import FIGURE_1
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.reproductions.paper_4_published import (
    PUBLISHED_DECODE,
    PUBLISHED_FIGURE_8,
    PUBLISHED_ONE_GPU,
    PUBLISHED_PREFILL,
    PUBLISHED_TTFT,
)
from specopt.views.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from specopt.reproductions.paper_4_simulation import Reproduction

_COLOURS = {"U-shape": "#8a6d1b", "U-Medusa": "#6a4c93", "U-Sarathi": "#33658a", "HAT": "#b5495b", "ours": "#2f7d4f"}
_TITLES = {"specbench": "SpecBench, Vicuna-7B", "cnn-dm": "CNN/DM, Vicuna-13B"}


def picture(data: Reproduction, number: int) -> Figure:
    """Return the picture of Figure 1, 6, 7, 8, 9, 10, 11 or 12.

    Raises
    ------
    InvalidInput
        If there is no such figure.
    MissingDependency
        If matplotlib is not installed.
    """
    drawn: dict[int, Callable[[], Figure]] = {
        1: figure_1,
        6: lambda: _by_rate(data, "specbench"),
        7: lambda: _by_rate(data, "cnn-dm"),
        8: lambda: _figure_8(data),
        9: lambda: _one_gpu(data, "specbench"),
        10: lambda: _one_gpu(data, "cnn-dm"),
        11: lambda: _by_stages(data, "specbench"),
        12: lambda: _by_stages(data, "cnn-dm"),
    }
    if number not in drawn:
        raise InvalidInput(f"number: expected one of {', '.join(map(str, drawn))}, got {describe(number)}")
    return drawn[number]()


def figure_1() -> Figure:
    """Prompt length against TTFT, prompt length against the delay of a batch, and chunk size against both."""
    figure, panels = _panels(1, 3, 10.5, 3.0)
    tokens = np.array([128, 256, 512, 1024, 2000])
    parts = {
        "communication": tokens * 3.20 / 2000,
        "in-cloud": np.array([FIGURE_1.at(m) for m in tokens.tolist()]),
        "device": tokens * 0.09 / 2000,
    }
    bottom = np.zeros(len(tokens))
    for (name, values), colour in zip(parts.items(), ("#33658a", "#2f7d4f", "#7d8790"), strict=True):
        panels[0, 0].bar(range(len(tokens)), values, bottom=bottom, color=colour, label=name)
        bottom += values
    panels[0, 0].plot(len(tokens) - 1, 3.57, "x", color="black", label="printed")
    panels[0, 0].set_xticks(range(len(tokens)), tokens.tolist())
    _label(panels[0, 0], "(b) U-shape, one request", "tokens of the prompt", "TTFT (s)")
    lengths = np.arange(1, 2001, 7)
    panels[0, 1].plot(lengths, [1e3 * FIGURE_1.at(9 + m) for m in lengths.tolist()], color="#2f7d4f")
    panels[0, 1].plot([32, 2000], [1.101 * 1e3 * FIGURE_1.at(10), 280.0], "x", color="black", label="printed")
    _label(panels[0, 1], "(c) with 9 requests in decode", "tokens of the prompt", "delay of a batch (ms)")
    sizes = np.array([32, 64, 128, 256, 512, 1024, 2000])
    steps = np.ceil(2000 / sizes)
    delays = np.array([FIGURE_1.at(9 + m) for m in sizes.tolist()])
    saved = 1e3 * (FIGURE_1.at(2009) + 63 * FIGURE_1.at(10) - steps * delays - (64 - steps) * FIGURE_1.at(10))
    axes: Any = panels[0, 2]
    axes.semilogx(sizes, saved, "o-", color="#33658a", base=2)
    axes.plot(32, 82.3, "x", color="black", label="printed")
    other = axes.twinx()
    other.semilogx(sizes, steps * delays / FIGURE_1.at(2009), "s--", color="#b5495b", base=2)
    other.plot(32, 6.6, "x", color="black")
    other.set_ylabel("TTFT over that without chunks (dashed)", fontsize=8)
    other.spines["top"].set_visible(False)
    for one in (axes, other):  # each has a locator of its own
        one.set_xticks(sizes, sizes.tolist())
        one.minorticks_off()
    _label(axes, "(d) chunks of 2000 tokens", "tokens of a chunk", "delay of 64 steps saved (ms, solid)")
    return figure


def _by_rate(data: Reproduction, dataset: str) -> Figure:
    """TTFT and TBT against the request rate."""
    runs = data.by_rate[dataset]
    figure, panels = _panels(1, 2, 8.5, 2.9)
    rate, printed = PUBLISHED_TTFT[dataset]
    for name, by_rate in runs.items():
        style: dict[str, Any] = {"color": _COLOURS[name], "markersize": 3, "label": name}
        panels[0, 0].plot(list(by_rate), [1e3 * run.mean_ttft_seconds for run in by_rate.values()], "o-", **style)
        panels[0, 1].plot(list(by_rate), [1e3 * run.mean_tbt_seconds for run in by_rate.values()], "o-", **style)
        if name in printed:
            panels[0, 0].plot(rate, printed[name], "x", color=_COLOURS[name], markersize=8)
    _label(panels[0, 0], f"{_TITLES[dataset]} (x: printed)", "requests per second", "TTFT (ms)", floor=True)
    _label(panels[0, 1], _TITLES[dataset], "requests per second", "TBT (ms)", floor=True)
    return figure


def _figure_8(data: Reproduction) -> Figure:
    """Computation per GPU with its standard deviation, ours beside the printed one."""
    figure, panels = _panels(1, len(data.by_rate), 8.5, 3.0)
    for column, (dataset, runs) in enumerate(data.by_rate.items()):
        axes: Any = panels[0, column]
        rate = PUBLISHED_TTFT[dataset][0]
        for place, (name, by_rate) in enumerate(runs.items()):
            run = by_rate[rate]
            mean, std = 1e3 * run.stage_seconds, 1e3 * run.stage_seconds_std
            axes.bar(place - 0.19, mean, 0.36, yerr=[[min(std, mean)], [std]], color=_COLOURS[name], capsize=3)
            if name in PUBLISHED_FIGURE_8[dataset]:
                mean, std = PUBLISHED_FIGURE_8[dataset][name]
                axes.bar(
                    place + 0.19, mean, 0.36, yerr=[[min(std, mean)], [std]], color="white", edgecolor=_COLOURS[name],
                    hatch="////", capsize=3,
                )  # fmt: skip
        axes.set_xticks(range(len(runs)), list(runs), fontsize=8)
        _label(axes, f"{_TITLES[dataset]} (hatched: printed)", "", "computation per GPU (ms)", legend=False)
    return figure


def _one_gpu(data: Reproduction, dataset: str) -> Figure:
    """Compliance with limits on prefill and decoding, one GPU."""
    runs = data.one_gpu[dataset]
    figure, panels = _panels(1, 2, 8.5, 2.9)
    marks = (PUBLISHED_PREFILL[dataset], PUBLISHED_DECODE[dataset])
    for name, run in runs.items():
        for column, phase in enumerate(("prefill", "decode")):
            axes: Any = panels[0, column]
            end = 1.3 * max(one.sla_seconds(phase, 0.95) for one in runs.values())  # type: ignore[arg-type]
            limits = np.linspace(0.0, end, 300)
            axes.plot(1e3 * limits, 100.0 * run.compliance(phase, limits), color=_COLOURS[name], label=name)  # type: ignore[arg-type]
        limit, shares = marks[0]
        if name in shares:
            panels[0, 0].plot(limit, shares[name], "x", color=_COLOURS[name], markersize=8)
        share, delays = marks[1]
        if name in delays:
            panels[0, 1].plot(delays[name], 100.0 * share, "x", color=_COLOURS[name], markersize=8)
    title = f"{_TITLES[dataset]}, one GPU (x: printed)"
    _label(panels[0, 0], title, "limit per 128 prompt tokens (ms)", "requests within (%)", floor=True)
    _label(panels[0, 1], _TITLES[dataset], "limit per 10 tokens (ms)", "requests within (%)", floor=True)
    return figure


def _by_stages(data: Reproduction, dataset: str) -> Figure:
    """TTFT and TBT against the number of GPUs."""
    runs = data.by_stages[dataset]
    figure, panels = _panels(1, 2, 8.5, 2.9)
    for name, by_stages in runs.items():
        style: dict[str, Any] = {"color": _COLOURS[name], "markersize": 3, "label": name}
        ttft = [1e3 * run.mean_ttft_seconds for run in by_stages.values()]
        tbt = [1e3 * run.mean_tbt_seconds for run in by_stages.values()]
        panels[0, 0].semilogx(list(by_stages), ttft, "o-", base=2, **style)
        panels[0, 1].semilogx(list(by_stages), tbt, "o-", base=2, **style)
        if dataset == "specbench" and name in PUBLISHED_ONE_GPU:
            for column, value in enumerate(PUBLISHED_ONE_GPU[name]):
                panels[0, column].plot(1, value, "x", color=_COLOURS[name], markersize=8)
    for column, quantity in enumerate(("TTFT (ms)", "TBT (ms)")):
        panels[0, column].set_xticks(list(next(iter(runs.values()))))
        panels[0, column].xaxis.set_major_formatter("{x:g}")
        panels[0, column].minorticks_off()
        title = f"{_TITLES[dataset]}{' (x: printed)' if dataset == 'specbench' else ''}"
        _label(panels[0, column], title, "GPUs in the pipeline", quantity, floor=True)
    return figure


def _panels(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    figure = new_figure(width, height)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _label(axes: Axes, title: str, x: str, y: str, *, floor: bool = False, legend: bool = True) -> None:
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top"]].set_visible(False)
    if floor:
        axes.set_ylim(bottom=0.0)
    if legend:
        axes.legend(frameon=False, fontsize=7)
