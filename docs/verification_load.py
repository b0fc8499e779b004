"""Draw a verifier under load again, from what the benchmark recorded: ``python -P docs/verification_load.py``."""

from __future__ import annotations

import csv
from pathlib import Path

from specopt.views.chart import Chart, Picture, looks, quantity

HERE = Path(__file__).parent
X, SPEED, WAIT = "load, % of the capacity of slack", "tokens per second", "seconds from request to verdict"

with open(HERE / "recorded" / "verification-load.csv", newline="") as file:
    rows = list(csv.DictReader(file))
policies = list(dict.fromkeys(row["policy"] for row in rows))
charts = []
for title, unit, columns in (
    ("All devices together", SPEED, {"mean": "tokens_per_second"}),
    ("Waiting for a verdict", WAIT, {"50 %": "p50_seconds", "99 %": "p99_seconds"}),
):
    found = [
        {"policy": row["policy"], "of requests": of, X: 100.0 * float(row["load"]), unit: float(row[column])}
        for row in rows
        for of, column in columns.items()
    ]
    legend = {"legend": {"columns": 1} if unit == WAIT else None}
    scale = {"scale": {"type": "log", "nice": False}, "axis": {"format": "~g"}} if unit == WAIT else {}
    encoding = {
        "x": quantity(X),
        "y": quantity(unit, **scale),
        "color": {**looks("policy", policies)["color"], **legend},
        "strokeDash": {"field": "of requests", "type": "nominal", "sort": None, **legend},
    }
    charts.append(Chart(title=title, rows=found, spec={"mark": "line", "encoding": encoding}))
Picture(charts, columns=2, width=340).save(HERE / "verification-load.png")
