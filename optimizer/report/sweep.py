"""Pages for sweeps.

A page shows draft lengths by batch size, gains with uncertainty bands, and the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specopt.kinds.chart import TOOLTIP, Chart, Row, Spec, category, layer, quantity
from specopt.models.sweep import Sweep
from specopt.report.markup import items, section, table
from specopt.report.page import Page, figure
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.grid import column_of
from specopt.solvers.speculation_table.tuning.options import Options
from specopt.solvers.speculation_table.tuning.tuner import Tuner
from specopt.solvers.speculation_table.tuning.tuning import Tuning
from specopt.views.speculation_table import name_of


def sweep_page(sweep: Sweep, sources: tuple[str, ...]) -> Page:
    """Return the report page for a sweep.

    The draft lengths are tuned with the default options of `specopt tune`.

    Raises
    ------
    InvalidInput
        If there are too few measurements to compare draft lengths.
    """
    options = Options.of(sweep, Goal(), 0.02, 0.9)
    tuning, tuner = options.best, options.tuners[options.best.setup]
    advice = (
        f"Speculate: {tuning.schedule.mean_speedup():.2f} times the throughput without speculation,"
        " in the geometric mean over the loads."
        if tuning.schedule.speculates
        else "Do not speculate: no draft length pays over these loads."
    )
    loss = (
        f"At any load, at most {100 * options.regret_bound:.1f} % of the throughput of the best"
        " option is lost."
    )
    body = [
        section(
            "Drafts by batch size",
            table(_ranges(tuning), "Draft tokens by batch size"),
            items(tuning.notes),
        ),
        section(
            "Results over the load",
            *map(figure, (*_by_size(tuning), _throughput(tuning, tuner))),
        ),
        section("Measurements", table(_measured(tuner), "Runs")),
    ]
    return Page(title="Draft lengths over load", lead=[advice, loss], body=body, sources=sources)


def _ranges(tuning: Tuning) -> list[Row]:
    names = ("batches from", "to", "draft tokens", "speed-up", "at least", "at most")
    return [
        dict(
            zip(names, (low, high, name_of(column_of(drafts)), *tuning.worth(drafted)), strict=True)
        )
        for drafted in tuning.schedule.ranges
        for low, high, drafts in [drafted]
    ]


def _by_size(tuning: Tuning) -> tuple[Chart, Chart]:
    """Return charts of the chosen draft length and of the speed-up, both by batch size."""
    grid = tuning.grid
    rows = []
    for row, size in enumerate(grid.sizes):
        taken = tuning.option(size)
        rows.append(
            {
                "batch size": size,
                "draft tokens": max(0, taken - 1),
                "choice": name_of(taken),
                "speed-up": float(grid.mean[row, taken] / grid.mean[row, 0]),
                "at least": float(grid.least[row, taken]),
                "at most": float(grid.most[row, taken]),
            }
        )
    x, scale = _load("batch size"), {"zero": False}
    chosen = Chart(
        title="Draft tokens by batch size",
        note="0: the engine serves without speculation, or drafts nothing.",
        rows=rows,
        spec={
            "height": 140,
            **layer(
                _line(rows, interpolate="step-after"),
                x=x,
                y=quantity("draft tokens", axis={"tickMinStep": 1}),
            ),
        },
    )
    gained = Chart(
        title="Speed-up of the choice over no speculation",
        note="The shaded band is predicted to contain new measurements.",
        rows=rows,
        spec={
            "layer": [
                layer(
                    {"type": "area", "opacity": 0.25},
                    x=x,
                    y=quantity("at least", title="speed-up", scale=scale),
                    y2={"field": "at most"},
                ),
                layer(_line(rows), x=x, y=quantity("speed-up", scale=scale)),
                layer({"type": "rule", "strokeDash": [4, 4]}, y={"datum": 1}),
            ]
        },
    )
    return chosen, gained


def _throughput(tuning: Tuning, tuner: Tuner) -> Chart:
    grid = tuning.grid
    lengths = {column_of(m.point.draft_length) for m in tuner.measurements}
    rows = [
        {
            "concurrency": c,
            "draft tokens": name_of(k),
            "tokens per second": float(grid.mean[grid.row(c), k]),
            "low": float(grid.low[grid.row(c), k]),
            "high": float(grid.high[grid.row(c), k]),
            "measured": "yes" if grid.measured[grid.row(c), k] else "no, predicted",
        }
        for k in sorted(lengths)
        for c in tuning.concurrencies
        if tuning.is_option(k)
    ]
    x, y = _load("concurrency"), {"scale": {"type": "log", "nice": False}, "axis": {"format": "~s"}}
    mean = {"x": x, "y": quantity("tokens per second", **y), "color": category("draft tokens")}
    known = {"test": "datum.measured == 'yes'", **category("draft tokens", legend=None)}
    return Chart(
        title="Output tokens per second by load and draft length",
        note=(
            "Lines connect the means, vertical strokes are their bands, and hollow points were not"
            " measured."
        ),
        rows=rows,
        spec={
            "layer": [
                layer(
                    {"type": "rule", "opacity": 0.5},
                    **mean
                    | {
                        "y": quantity("low", title="tokens per second", **y),
                        "y2": {"field": "high"},
                    },
                ),
                layer("line", **mean),
                layer(
                    {"type": "point", "size": 45, "tooltip": TOOLTIP},
                    **mean,
                    fill={"condition": known, "value": "var(--paper)"},
                ),
            ]
        },
    )


def _measured(tuner: Tuner) -> list[Row]:
    rows = [
        {
            "concurrency": one.point.condition.concurrency,
            "workload": one.point.condition.workload or None,
            "context tokens": one.point.condition.context_tokens or None,
            "drafter": one.setup.drafter or None,
            "draft tokens": name_of(column_of(one.point.draft_length)),
            "tokens per second": one.tokens_per_second,
            "tokens per step": one.acceptance_length,
        }
        for one in tuner.measurements
    ]
    said = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return [{name: row[name] for name in said} for row in rows]


def _line(rows: Sequence[Row], **more: Any) -> Spec:
    return {"type": "line", **more, "point": len(rows) <= 40, "tooltip": TOOLTIP}


def _load(name: str) -> Spec:
    return quantity(name, scale={"type": "log", "base": 2, "nice": False}, axis={"format": "~g"})
