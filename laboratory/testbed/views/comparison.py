"""Records of the laboratory: predicted and measured values, as a table and as a picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console

from specopt.console.terminal import sentence, table_of, title
from specopt.kinds.chart import SERIES, Chart, Picture, category, quantity
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from testbed.comparison import Gain, gains_of, points_of, quantities, summarise
from testbed.experiments import experiment
from testbed.explanation import explain
from testbed.records import check_whole

Record = Mapping[str, Any]

BAND = 0.1
"""Maximum error of a prediction in the grey band of the picture, relative to the measurement."""

COLOURS = [*(f"var(--series-{i})" for i in range(SERIES)), "var(--ink)", "#f2c200"]
"""Colours of the scenes."""

TERMS = ("communication", "steps", "passes", "between", "waiting")


def comparison_of(record: Record) -> dict[str, Any]:
    """Return all comparisons of a record as JSON-like data. NaN becomes None.

    Raises
    ------
    InvalidInput
        If a repetition is missing.
    """
    check_whole(record)
    summaries = [
        {
            "predictor": predictor,
            "quantity": quantity,
            **asdict(summarise(points_of(record, predictor, quantity))),
        }
        for predictor, quantity in quantities(record)
    ]
    return {
        "kind": record["kind"],
        "pair": record["pair"],
        "date": record["date"],
        "summaries": _known(summaries),
        "gains": _known([asdict(gain) for gain in _gains(record)]),
        "terms": _terms(record),
        "differences": _differences(record),
    }


def tables_of(said: Mapping[str, Any], *, narrow: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Return the result of `comparison_of` as rows of tables, by caption. Tables without rows are
    omitted.

    Narrow tables omit the interval of the bias.
    """
    of = "% of theirs; least and most of any two repetitions"
    of += (
        ", undisturbed"
        if any(one["quantity"] == "undisturbed_seconds" for one in said["summaries"])
        else ""
    )
    found: dict[str, list[dict[str, Any]]] = {
        "How good predictions were (%)": [
            {
                "predictor": one["predictor"],
                "quantity": words(one["quantity"]),
                "plans": one["points"],
                "median error": _interval(one["median_error"]),
                "bias": _interval(one["bias"] | {"low": None} if narrow else one["bias"]),
                "pairs": one["pairs"],
                "right order": _interval(one["right_order"]),
            }
            for one in said["summaries"]
        ],
        f"What ours gained over rivals ({of})": [
            {
                "scene": one["scene"] + 1,
                "plans": one["label"],
                "ours": one["ours"],
                "theirs": one["theirs"],
                "predicted": 100.0 * one["predicted"],
                "measured": _interval(one["measured"]),
            }
            for one in said["gains"]
        ],
        "Measured less predicted, shares of the measured total (%, medians)": [
            {"plans": label, **{name: 100.0 * share for name, share in shares.items()}}
            for label, shares in said["terms"].items()
        ],
    }
    return {caption: rows for caption, rows in found.items() if rows}


def print_comparison(record: Record, out: Console) -> None:
    """Print the accuracy of predictions, the gains of methods, and the causes of time that was not
    predicted.
    """
    title(out, f"{record['kind']}, pair ", str(record["pair"]), after=f", {record['date']}")
    said = comparison_of(record)
    for caption, rows in tables_of(said, narrow=True).items():
        out.print(f"\n{caption}:\n", soft_wrap=True)
        out.print(
            table_of(rows, lambda cell: f"{cell:+.1f}" if isinstance(cell, float) else str(cell))
        )
    told = said["differences"]
    if told is not None:
        out.print()
        text = (
            f"{told['differing']} of {told['outputs']} outputs differ from those of the verify"
            " model alone"
        )
        worst = f", first where its two best logits are {told['widest_margin']:.2g} apart at most"
        sentence(out, text + (worst if told["differing"] else "") + ".")
    out.print()


def draw_comparison(records: Sequence[Record]) -> Picture:
    """Draw predicted and measured values, with a point per plan and a panel per quantity of the
    model.
    """
    charts = [
        dataclasses.replace(chart_of(record, quantity), title=f"{record['kind']}, {record['pair']}")
        for record in records
        for quantity in drawn_quantities(record)
    ]
    return Picture(charts, columns=len(charts), width=380)


def drawn_quantities(record: Record) -> list[str]:
    """Return the quantities of the model to draw."""
    parts = ("communication_seconds", "undisturbed_seconds")
    return [
        quantity
        for predictor, quantity in quantities(record)
        if predictor == "model" and quantity not in parts
    ]


def chart_of(record: Record, name: str, predictor: str = "model", side: int = 380) -> Chart:
    """Return the chart of measured by predicted values, with a point per plan, on a square of
    `side` pixels.
    """
    x, y = (f"{how} {axis(name)}" for how in ("predicted", "measured"))
    rows: list[dict[str, Any]] = [
        {
            "plans": point.label,
            "scene": f"scene {point.scene + 1}",
            "methods": ", ".join(point.methods),
            x: point.predicted,
            y: point.measured,
            "least": min(point.repetitions),
            "most": max(point.repetitions),
        }
        for point in points_of(record, predictor, name)
    ]
    values = [value for row in rows for value in (row[x], row["least"], row["most"])]
    ends = [0.9 * min(values), 1.1 * max(values)]
    scale = {
        "scale": {"type": "log", "domain": ends, "nice": False},
        "axis": {"format": "~g", "tickCount": 4},
    }
    colour = category("scene", title=None, scale={"range": COLOURS})
    across = {"x": quantity(x, **scale), "color": colour}
    band = [
        {"x": end, "y": end, "low": end / (1.0 + BAND), "high": end / (1.0 - BAND)} for end in ends
    ]
    beneath = {"x": quantity("x", title=x), "y": quantity("y", title=y)}
    within = {**beneath, "y": quantity("low", title=y), "y2": {"field": "high"}}
    return Chart(
        title=f"Measured against predicted {words(name)}",
        note=(
            "A point is a plan: the median of its repetitions, from the least to the most. On the"
            f" line both agree; in the band the prediction is at most {100 * BAND:.0f} % off."
        ),
        rows=rows,
        spec={
            "height": side,
            "width": side,
            "layer": [
                {
                    "data": {"values": band},
                    "mark": {"type": "area", "color": "var(--soft)", "opacity": 0.15, "clip": True},
                    "encoding": within,
                },
                {
                    "data": {"values": band},
                    "mark": {"type": "line", "color": "var(--soft)", "strokeDash": [4, 4]},
                    "encoding": beneath,
                },
                {
                    "mark": {"type": "rule", "opacity": 0.5},
                    "encoding": {
                        **across,
                        "y": quantity("least", title=y, **scale),
                        "y2": {"field": "most"},
                    },
                },
                {
                    "mark": {
                        "type": "point",
                        "filled": True,
                        "size": 45,
                        "tooltip": {"content": "data"},
                    },
                    "encoding": {**across, "y": quantity(y, **scale)},
                },
            ],
        },
    )


def _gains(record: Record) -> list[Gain]:
    played = experiment(record["kind"])
    known = [quantity for predictor, quantity in quantities(record) if predictor == "model"]
    quantity = next((one for one in ("undisturbed_seconds", *known) if one in known), "")
    points = points_of(record, "model", quantity)
    smaller = quantity.endswith("_seconds")
    return [
        gain
        for rival in played.RIVALS
        for gain in gains_of(points, played.OURS, rival, smaller_is_better=smaller)
    ]


def _terms(record: Record) -> dict[str, dict[str, float]]:
    """Return the terms of plans of serving latency, by label."""
    if record["kind"] != ServingLatencyProblem.kind:
        return {}
    found: dict[str, list[dict[str, float]]] = {}
    for trial in record["trials"]:
        problem = ServingLatencyProblem.from_dict(record["problems"][trial["problem"]])
        plan = ServingLatencyPlan.from_dict(trial["plan"])
        for measured in trial["measured"]:
            terms = explain(problem, plan, measured)
            shares = {name: getattr(terms, name) / measured["total_seconds"] for name in TERMS}
            found.setdefault(trial["label"], []).append(shares)
    return {
        label: {name: float(np.median([one[name] for one in shares])) for name in TERMS}
        for label, shares in found.items()
    }


def _differences(record: Record) -> dict[str, float] | None:
    """Return the number of outputs that differ from those of the verify model alone, or None if
    none were compared.
    """
    runs = [
        measured
        for trial in record["trials"]
        for measured in trial["measured"]
        if "differences" in measured
    ]
    if not runs:
        return None
    margins = [one["margin"] for run in runs for one in run["differences"]]
    outputs = sum(
        len(measured.get("served", ())) or len(record["alone"][trial["scene"]])
        for trial in record["trials"]
        for measured in trial["measured"]
    )
    return {
        "outputs": outputs,
        "differing": len(margins),
        "widest_margin": max(margins, default=0.0),
    }


def _interval(share: Mapping[str, float | None]) -> str:
    value, low, high = (share[name] for name in ("value", "low", "high"))
    if value is None:
        return "-"
    return f"{100 * value:.1f}" + (
        "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
    )


def axis(quantity: str) -> str:
    """Return the name of a quantity and its unit."""
    return words(quantity.removesuffix("_seconds")) + (
        " (s)" if quantity.endswith("_seconds") else ""
    )


def words(quantity: str) -> str:
    """Return the name of a quantity in words."""
    return quantity.replace("_", " ")


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_known(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
