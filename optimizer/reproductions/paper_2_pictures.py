"""Pictures of the simulations of paper 2: Figures 1, 7 and 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from specopt.instances.verification_batch.workload import CLASS_SPEEDS
from specopt.reproductions.paper_2_simulation import figure_1_data
from specopt.solvers.verification_batch.simulate import LongRun
from specopt.views.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#33658a", "#2f7d4f", "#8a6d1b", "#b5495b")


def figure_1(rows: Sequence[dict[str, float]] | None = None) -> Figure:
    """Return device goodput against the share of wasted draft tokens, one line per acceptance rate."""
    data = figure_1_data() if rows is None else rows
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    for colour, rate in zip(_COLOURS, sorted({row["acceptance_rate"] for row in data}), strict=False):
        line = [row for row in data if row["acceptance_rate"] == rate]
        x, y = [row["wasted_share"] for row in line], [row["tokens_per_second"] for row in line]
        axes.plot(x, y, "o-", color=colour, markersize=4, label=f"acceptance {rate:g}")
        axes.annotate(
            f"K = {line[-1]['window']:g}", (x[-1], y[-1]), xytext=(0, -11), textcoords="offset points", fontsize=7,
            ha="center", color=colour,
        )  # fmt: skip
    axes.set_ylim(bottom=0.0)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("share of drafted tokens that did not count (windows K = 1, 2, 4, 6, 8, 12, 16)")
    axes.set_ylabel("tokens/s of one device")
    axes.set_title("Waste and goodput of a device alone", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def figure_7(data: dict[str, list[list[float]]], devices: Sequence[int]) -> Figure:
    """Return violation rates against the number of devices, one panel per policy, one line per class."""
    figure = new_figure(3.2 * len(data), 3.2)
    panels = figure.subplots(1, len(data), sharey=True, squeeze=False)[0]
    for axes, (policy, rates) in zip(panels, data.items(), strict=True):
        for index, colour in enumerate(_COLOURS[: len(rates[0])]):
            line = [100.0 * row[index] for row in rates]
            axes.plot(devices, line, "o-", color=colour, markersize=3, label=f"{CLASS_SPEEDS[index]:g} tokens/s")
        axes.set_title(policy, loc="left", fontsize=10)
        axes.set_xlabel("devices")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("responses below their speed (%)")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def figure_8(run: LongRun, spike_ratio: float = 1.5) -> Figure:
    """Return the queue-compute plane: every verification by queued and verification time, the late ones by cause."""
    events = run.events
    late = events[:, 7] > 0.0
    spike = events[:, 6] > spike_ratio
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    kinds = (
        ("in time", ~late, "#b9c3cc", 3.0, 0.5),
        ("late, queue-dominant", late & ~spike, "#33658a", 4.0, 0.6),
        ("late, compute-dominant", late & spike, "#b5495b", 6.0, 0.8),
    )
    for name, chosen, colour, size, alpha in kinds:
        share = 100.0 * chosen.mean() if len(events) else 0.0
        axes.scatter(
            np.maximum(1.0, 1e3 * events[chosen, 3]), 1e3 * events[chosen, 4], s=size, alpha=alpha, color=colour,
            linewidths=0, label=f"{name} ({share:.1f} %)", rasterized=True,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("queued (ms, at least 1)")
    axes.set_ylabel("verification (ms)")
    axes.set_title(f"{run.policy.name}, {run.devices} devices: iterations against Eq. 12", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8, markerscale=2.5)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
