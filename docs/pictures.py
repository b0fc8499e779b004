"""The pictures of the pages, from what benchmarks recorded or from a solved problem; `pages.py`
draws them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import placement_map  # type: ignore[import-not-found]  # of the benchmarks, which are no package
from papers.ledger import TITLES, entries, paper
from papers.views import draw_map

import specopt
from specopt.kinds.chart import Chart, Picture, category, looks, quantity
from specopt.kinds.serving_latency.view import pipeline_figure

RECORDED = Path(__file__).parent / "recorded"
POLICIES = {
    "online": "online (drafts while it pays)",
    "continuous": "best fixed draft length",
    "autoregressive": "no drafts",
    "algorithm-1": "fixed batches of Algorithm 1",
    "bound": "bound (proven)",
}
TICKS = [digit * 10.0**power for power in range(-2, 4) for digit in (1, 2, 5)]
"""Labelled values of logarithmic axes."""


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a recorded table."""
    with open(RECORDED / name, newline="") as file:
        return list(csv.DictReader(file))


def pipeline() -> Picture:
    """Return the pipeline of the best plan for a setting of paper 1."""
    problem = specopt.generate("serving-latency/paper-1", tasks=60, seed=1)
    return pipeline_figure(problem, specopt.solve(problem).plan)


def load() -> Picture:
    """Return latency against load, from the record of `benchmarks/serving_online.py`."""
    rows = rows_of("load.csv")
    across, up = "requests per second", "seconds from arrival to finish"
    log = {"type": "log", "nice": False}
    colour = looks("policy", list(POLICIES.values()))["color"]
    width = {  # a line below another one stays visible
        "condition": {"test": f"datum.policy == '{POLICIES['autoregressive']}'", "value": 4},
        "value": 2,
    }
    charts: list[Chart] = []
    for trace in dict.fromkeys(row["trace"] for row in rows):
        here = [row for row in rows if row["trace"] == trace]
        found = [
            {
                "policy": label,
                "latency": of,
                across: float(row["requests_per_second"]),
                up: float(row[column]),
            }
            for policy, label in reversed(POLICIES.items())  # the first on top
            for row in here
            for of, column in (("mean", "mean_seconds"), ("95th percentile", "quantile_95_seconds"))
            if row["policy"] == policy and (of == "mean" or policy != "bound")
        ]
        loads = sorted({row[across] for row in found})
        legend = {"legend": {"columns": 1, "columnPadding": 30} if not charts else None}
        encoding = {
            "x": quantity(across, scale=log, axis={"values": loads, "format": "~g"}),
            "y": quantity(up, scale=log, axis={"values": TICKS, "format": "~g"}),
            "color": {**colour, **legend},
            "strokeDash": {"field": "latency", "type": "nominal", "sort": None, **legend},
            "strokeWidth": width,
        }
        charts.append(Chart(title=trace, rows=found, spec={"mark": "line", "encoding": encoding}))
    return Picture(charts, columns=len(charts), width=340)


def verification_load() -> Picture:
    """Return a verifier under load, from the record of `benchmarks/verification_long_run.py`."""
    rows = rows_of("verification-load.csv")
    across, late, speed, wait = (
        "load, % of the capacity of slack",
        "late responses, %",
        "tokens per second of all devices",
        "seconds from request to verdict",
    )
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    speeds = {(row["policy"], row["load"]): float(row["tokens_per_second"]) for row in rows}
    cost = max(1.0 - speeds["slack", row["load"]] / float(row["tokens_per_second"]) for row in rows)
    charts = []
    for title, unit, scaled, columns in (
        ("Late responses", late, 100.0, {"all": "too_late"}),
        (f"Throughput: slack costs up to {cost:.0%}", speed, 1.0, {"all": "tokens_per_second"}),
        ("Waiting time", wait, 1.0, {"50 %": "p50_seconds", "99 %": "p99_seconds"}),
    ):
        found = [
            {
                "policy": row["policy"],
                "of requests": of,
                across: 100.0 * float(row["load"]),
                unit: scaled * float(row[column]),
            }
            for row in rows
            for of, column in columns.items()
        ]
        legend = {"legend": {"columns": 1, "columnPadding": 30} if unit == wait else None}
        scale = (
            {"scale": {"type": "log", "nice": False}, "axis": {"values": TICKS, "format": "~g"}}
            if unit == wait
            else {}
        )
        dashes = {"domain": ["50 %", "99 %"], "range": [[1, 0], [4, 3]]}
        encoding = {
            "x": quantity(across),
            "y": quantity(unit, **scale),
            "color": {**looks("policy", policies)["color"], **legend},
            "strokeWidth": {
                "condition": {"test": "datum.policy == 'fcfs'", "value": 4},
                "value": 2,
            },
        }
        if unit == wait:
            encoding["strokeDash"] = category("of requests", scale=dashes, **legend)
        charts.append(Chart(title=title, rows=found, spec={"mark": "line", "encoding": encoding}))
    return Picture(charts, columns=len(charts), width=300)


def placement() -> Picture:
    """Return the best place by round trip and clients, from what `benchmarks/placement_map.py`
    recorded.
    """
    return placement_map.picture(placement_map.recorded())  # type: ignore[no-any-return]


def verdicts(name: str) -> Picture:
    """Return the share of sampled assumptions for which the statements of a paper hold."""
    return draw_map(entries(paper(name)))


PICTURES: dict[str, Callable[[], Picture]] = {
    "pipeline.svg": pipeline,
    "load.svg": load,
    "verification-load.svg": verification_load,
    "recorded/placement-map.svg": placement,
    **{f"recorded/{name}.svg": partial(verdicts, name) for name in TITLES},
}
"""By the names of their files beside the pages."""
