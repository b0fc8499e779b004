"""Draw latency against load again, from what `benchmarks/serving_online.py` recorded: ``python -P docs/load.py``."""

from __future__ import annotations

import csv
from pathlib import Path

from specopt.views.chart import Chart, Picture, looks, quantity

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
X, Y = "requests per second", "seconds from arrival to finish"
how = {"scale": {"type": "log", "nice": False}, "axis": {"format": "~g", "tickCount": 5}}
colour = looks("policy", list(LABELS.values()))["color"]
charts = []
for trace in traces:
    found = [
        {"policy": label, "of": of, X: float(row["requests_per_second"]), Y: float(row[column])}
        for policy, label in reversed(LABELS.items())  # the first on top
        for row in rows
        for of, column in (("mean", "mean_seconds"), ("95 % of requests", "quantile_95_seconds"))
        if row["trace"] == trace and row["policy"] == policy and (of == "mean" or policy != "bound")
    ]
    legend = {"legend": {"columns": 1} if not charts else None}  # one for all
    dashes = {"field": "of", "type": "nominal", "title": "latency", "sort": None, **legend}
    encoding = {"x": quantity(X, **how), "y": quantity(Y, **how), "color": {**colour, **legend}, "strokeDash": dashes}
    charts.append(Chart(title=trace, rows=found, spec={"mark": "line", "encoding": encoding}))
Picture(charts, columns=len(charts), width=340).save(HERE / "load.png")
