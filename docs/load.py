"""Draw latency against load again, from what `benchmarks/serving_online.py` recorded: ``python -P docs/load.py``."""

from __future__ import annotations

import csv
from pathlib import Path

from specopt.views.canvas import line_style, new_figure

HERE = Path(__file__).parent
LABELS = {
    "online": "online: drafts while it pays",
    "continuous": "continuous batching, best fixed draft length",
    "autoregressive": "continuous batching, no drafts",
    "algorithm-1": "static batches of Algorithm 1, lot by lot",
    "bound": "no policy is below (proven)",
}

with open(HERE / "recorded" / "load.csv", newline="") as file:
    rows = list(csv.DictReader(file))
traces = list(dict.fromkeys(row["trace"] for row in rows))
figure = new_figure(3.6 * len(traces), 3.6)
panels = figure.subplots(1, len(traces), squeeze=False)[0]
for axes, trace in zip(panels, traces, strict=True):
    for i, (policy, label) in enumerate(LABELS.items()):
        mine = [row for row in rows if row["trace"] == trace and row["policy"] == policy]
        colour = "#999999" if policy == "bound" else line_style(i)[0]
        loads = [float(row["requests_per_second"]) for row in mine]
        for column, width, dashes in (("mean_seconds", 1.8, "-"), ("quantile_95_seconds", 0.8, ":")):
            if policy != "bound" or column == "mean_seconds":
                name = label if column == "mean_seconds" else None
                seconds = [float(row[column]) for row in mine]
                axes.plot(loads, seconds, dashes, color=colour, lw=width, label=name, zorder=10 - i)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("requests per second")
    axes.set_title(trace, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("seconds from arrival to finish")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
figure.suptitle("Mean latency (dotted: 95 % of requests) on real traces, stretched to a load", fontsize=10)
figure.savefig(HERE / "load.png", dpi=100)
