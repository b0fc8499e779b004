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
from specopt.kinds.chart import Chart, Picture, looks, quantity
from specopt.kinds.serving_latency.view import pipeline_figure

RECORDED = Path(__file__).parent / "recorded"
POLICIES = {
    "online": "online: drafts while it pays",
    "continuous": "continuous batching, best fixed draft length",
    "autoregressive": "continuous batching, no drafts",
    "algorithm-1": "static batches of Algorithm 1, lot by lot",
    "bound": "no policy is below (proven)",
}


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a recorded table."""
    with open(RECORDED / name, newline="") as file:
        return list(csv.DictReader(file))


def pipeline() -> Picture:
    """Return the pipeline of the best plan for a setting of paper 1."""
    problem = specopt.generate("serving-latency/paper-1", tasks=60, seed=1)
    return pipeline_figure(problem, specopt.solve(problem).plan)


def load() -> Picture:
    """Return latency against load, from what `benchmarks/serving_online.py` recorded."""
    rows = rows_of("load.csv")
    across, up = "requests per second", "seconds from arrival to finish"
    how = {"scale": {"type": "log", "nice": False}, "axis": {"format": "~g", "tickCount": 5}}
    colour = looks("policy", list(POLICIES.values()))["color"]
    charts: list[Chart] = []
    for trace in dict.fromkeys(row["trace"] for row in rows):
        found = [
            {
                "policy": label,
                "of": of,
                across: float(row["requests_per_second"]),
                up: float(row[column]),
            }
            for policy, label in reversed(POLICIES.items())  # the first on top
            for row in rows
            for of, column in (
                ("mean", "mean_seconds"),
                ("95 % of requests", "quantile_95_seconds"),
            )
            if row["trace"] == trace
            and row["policy"] == policy
            and (of == "mean" or policy != "bound")
        ]
        legend = {"legend": {"columns": 1} if not charts else None}  # one for all
        dashes = {"field": "of", "type": "nominal", "title": "latency", "sort": None, **legend}
        encoding = {
            "x": quantity(across, **how),
            "y": quantity(up, **how),
            "color": {**colour, **legend},
            "strokeDash": dashes,
        }
        charts.append(Chart(title=trace, rows=found, spec={"mark": "line", "encoding": encoding}))
    return Picture(charts, columns=len(charts), width=340)


def verification_load() -> Picture:
    """Return a verifier under load, from what `benchmarks/verification_long_run.py` recorded."""
    rows = rows_of("verification-load.csv")
    across, speed, wait = (
        "load, % of the capacity of slack",
        "tokens per second",
        "seconds from request to verdict",
    )
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    charts = []
    for title, unit, columns in (
        ("All devices together", speed, {"mean": "tokens_per_second"}),
        ("Waiting for a verdict", wait, {"50 %": "p50_seconds", "99 %": "p99_seconds"}),
    ):
        found = [
            {
                "policy": row["policy"],
                "of requests": of,
                across: 100.0 * float(row["load"]),
                unit: float(row[column]),
            }
            for row in rows
            for of, column in columns.items()
        ]
        legend = {"legend": {"columns": 1} if unit == wait else None}
        scale = (
            {"scale": {"type": "log", "nice": False}, "axis": {"format": "~g"}}
            if unit == wait
            else {}
        )
        encoding = {
            "x": quantity(across),
            "y": quantity(unit, **scale),
            "color": {**looks("policy", policies)["color"], **legend},
            "strokeDash": {"field": "of requests", "type": "nominal", "sort": None, **legend},
        }
        charts.append(Chart(title=title, rows=found, spec={"mark": "line", "encoding": encoding}))
    return Picture(charts, columns=2, width=340)


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
