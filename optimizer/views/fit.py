"""Display of fitted runtimes and of fitted rejection predictors.

Runtimes are shown as text and as pictures, with coefficients and their limits, errors, residuals
and warnings. Predictors are shown as text, with their stopping rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specopt.console.terminal import Console, line, sentence, table, title
from specopt.instances.runtimes.fit import WORTH_TELLING, RuntimeFit
from specopt.instances.runtimes.measured import MeasuredRuntime
from specopt.kinds.chart import Chart, Picture, layer, quantity, time_unit
from specopt.models.pass_time.measured import AXES

BINS = 8
"""Maximum number of groups into which the rows are divided to show residuals."""

MARKS = 13
"""Maximum length of a bar to the left or to the right of zero, in characters."""


def print_fit(name: str, fit: RuntimeFit, out: Console) -> None:
    """Print a fitted runtime.

    `name` is the label of the fit, and is empty if there is only one fit.
    """
    title(out, f"{name}: " if name else "", fit.form.formula(_work(fit)))
    view = table("  coefficient", "fitted", f"{fit.level:.0%} limits", left=1, gap=3)
    columns = (fit.coefficients.ravel(), fit.lower.ravel(), fit.upper.ravel())
    for label, value, low, high in zip(
        fit.form.coefficient_names(fit.slope), *columns, strict=True
    ):
        view.add_row(f"  {label}", f"{value:.5g}", f"{low:.5g} to {high:.5g}")
    out.print(view)
    metrics, origin = fit.metrics, fit.table
    r2 = "-" if metrics.r2 is None else f"{metrics.r2:.5f}"
    line(
        out, "errors", f"R2 {r2}, MAPE {metrics.mape:.2%}, at most {metrics.max_relative_error:.1%}"
    )
    line(
        out,
        "",
        f"RMSE {1e3 * metrics.rmse_seconds:.4g} ms, at most"
        f" {1e3 * metrics.max_error_seconds:.4g} ms; squares of {fit.errors} errors minimised",
    )
    taken = f"{origin.rows[1]:,} of {origin.rows[0]:,} rows"
    line(out, "measured", f"{metrics.samples:,} passes from {taken} of {origin.source}")
    lowest, highest = fit.misfit
    line(
        out,
        "misfit",
        f"measured times {lowest:+.1%} to {highest:+.1%} off the predicted, with rows held out"
        " as well",
    )
    if fit.cross_validation is not None:
        line(out, "form", fit.cross_validation.reason)
    _print_residuals(fit, out)
    for warning in fit.warnings:
        sentence(out, f"  Warning: {warning}.", "yellow")


def print_measured(name: str, found: MeasuredRuntime, out: Console) -> None:
    """Print a table of measured passes, and the accuracy of interpolation between the points."""
    title(out, f"{name}: " if name else "", "table, interpolated linearly, never decreasing")
    passes, origin = found.interpolation, found.source
    line(
        out,
        "measured",
        f"{len(origin):,} passes from {origin.rows[1]:,} of {origin.rows[0]:,} rows of"
        f" {origin.source}",
    )
    line(out, "range", passes.measured)
    errors = [
        f"{axis} {np.expm1(error):.1%}"
        for axis, error in zip(AXES, passes.left_out, strict=True)
        if np.isfinite(error)
    ]
    if errors:
        line(
            out,
            "left out",
            f"a point interpolated from its neighbours is off by up to: {', '.join(errors)}",
        )
    for warning in found.to_dict()["warnings"]:
        sentence(out, f"  Warning: {warning}.", "yellow")


def _print_residuals(fit: RuntimeFit, out: Console) -> None:
    """Print the prediction errors for groups of rows.

    The groups are equally large and sorted by work.
    """
    x = fit.inputs[:, 0]
    order = np.argsort(x, kind="stable")
    groups = [part for part in np.array_split(order, min(BINS, len(np.unique(x)))) if len(part)]
    widest = max(float(np.abs(fit.relative_errors[part].mean())) for part in groups)
    view = table(f"  {_work(fit)}", "mean error", "MAPE", left=1, gap=3)
    view.add_column("predicted too fast | too slow", no_wrap=True)
    for part in groups:
        errors = fit.relative_errors[part]
        mean = float(errors.mean())
        marks = round(MARKS * abs(mean) / widest) if widest > 0.0 else 0
        bar = "#" * marks
        bar = f"{bar:>{MARKS}}|" if mean < 0.0 else f"{'':>{MARKS}}|{bar}"
        low, high = float(x[part].min()), float(x[part].max())
        view.add_row(
            f"  {low:.4g} to {high:.4g}", f"{mean:+.1%}", f"{np.abs(errors).mean():.1%}", bar
        )
    out.print(view)


def _work(fit: RuntimeFit) -> str:
    """Return the name of the quantity in the first input column."""
    if fit.inputs.shape[1] > 1:
        return "new tokens"
    return "tokens" if fit.slope == "seconds_per_token" else "FLOPs"


# ---------------------------------------------------------------------------- as a picture


def fit_figure(fits: Mapping[str, RuntimeFit]) -> Picture:
    """Return two charts for each fit.

    The first chart shows times, and the second chart shows errors relative to the measurements.
    """
    pairs = [_charts(name, fit) for name, fit in fits.items()]
    return Picture(
        [chart for row in zip(*pairs, strict=True) for chart in row], columns=len(fits), width=480
    )


def _charts(name: str, fit: RuntimeFit) -> tuple[Chart, Chart]:
    scale, unit = time_unit(float(fit.table.seconds.max()))
    work, fitted = f"{_work(fit)} of the pass", f"{fit.form.name} fit"
    time, error = f"time of a pass ({unit})", "fit too slow by (%)"
    columns = (
        fit.inputs[:, 0],
        scale * fit.table.seconds,
        scale * fit.predicted_seconds,
        100.0 * fit.relative_errors,
    )
    rows = [
        dict(zip((work, "measured", fitted, error), row, strict=True))
        for row in np.column_stack(columns).tolist()
    ]
    x = quantity(work, axis={"format": "~s"})
    points = {"type": "point", "filled": True, "size": 18, "opacity": 0.6}
    single = fit.inputs.shape[1] == 1  # with several features, there is no single x axis
    layers = [
        layer(mark, x=x, y=quantity(column, title=time), color={"datum": column, "title": None})
        for column, mark in (
            ("measured", points),
            (fitted, "line" if single else {**points, "size": 8}),
        )
    ]
    levels = {"values": [{"at": 100.0 * level} for level in (-WORTH_TELLING, 0.0, WORTH_TELLING)]}
    rules = {
        "data": levels,
        **layer({"type": "rule", "strokeDash": [2, 2]}, y=quantity("at", title=error)),
    }
    r2 = "" if fit.metrics.r2 is None else f"R² {fit.metrics.r2:.4f}, "
    title = f"{f'{name}: ' if name else ''}{fit.form.name}, {r2}MAPE {fit.metrics.mape:.2%}"
    errors = layer(points, x=x, y=quantity(error))
    return (
        Chart(title=title, rows=rows, spec={"layer": layers}),
        Chart(title="", rows=rows, spec={"height": 130, "layer": [rules, errors]}),
    )


# ---------------------------------------------------------------------------- rejection predictors


def print_fitted(found: dict[str, Any], out: Console) -> None:
    """Print a rejection predictor, its stopping rules and a verdict.

    `found` is the JSON output of the command that fitted the predictor.
    """
    title(out, "rejection predictor: ", found["predictor"])
    line(
        out,
        "rounds",
        f"{found['rounds']:,}, a third of them held out; {found['dropped']:,} dropped as too short",
    )
    line(out, "longest draft", f"{found['problem']['max_draft_tokens']} tokens")
    line(
        out,
        "false alarms",
        f"{found['false_reject']:.1%} of accepted tokens are predicted rejected",
    )
    line(out, "misses", f"{found['false_accept']:.1%} of first rejections are predicted accepted")
    line(out, "area", f"{found['area']:.3f} under the curve")
    view = table("  rule", "model", "held-out rounds", "vs. the fixed window", left=1)
    for one in found["rules"]:
        low, high = one["gain_interval"]
        gain = (
            ""
            if one["method"] == "fixed-window"
            else f"{one['gain']:+.1%} ({low:+.1%} to {high:+.1%})"
        )
        speed = f"{one['held_out']:.4g} +- {one['standard_error']:.2g}"
        view.add_row(f"  {one['method']}", f"{one['model']:.4g} tokens/s", speed, gain)
    out.print(view)
    sentence(out, f"  {_verdict(found['rules'])}")


def _verdict(rules: Sequence[dict[str, Any]]) -> str:
    best = max(rules, key=lambda one: one["held_out"])
    belief = next(one for one in rules if one["method"] == "belief")
    if belief["gain_interval"][0] > 0.0:
        return (
            "stopping by belief is faster than the best fixed window on rounds not used for the fit"
        )
    if best["method"] == "fixed-window" or belief["gain_interval"][1] < 0.0:
        return "the best fixed window is the fastest rule on rounds not used for the fit: use it"
    return "no difference from the best fixed window is significant on rounds not used for the fit"
