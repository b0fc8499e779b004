"""A fitted runtime for people: coefficients with limits, errors, residuals along the work, warnings."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from specopt.instances.runtime_fit import RuntimeFit
from specopt.instances.verification_time import COEFFICIENTS

BINS = 8
MARKS = 13
"""Room for marks on each side."""


def print_fit(name: str, fit: RuntimeFit, out: Console) -> None:
    """Print one fit; `name` says whose, empty for a single one."""
    title = Text(f"{name}: " if name else "")
    title.append(_formula(fit), style="bold cyan")
    out.print(title, soft_wrap=True)
    view = _table("  coefficient", "fitted", f"{fit.level:.0%} limits")
    for label, value, low, high in _coefficients(fit):
        view.add_row(f"  {label}", f"{value:.5g}", f"{low:.5g} to {high:.5g}")
    out.print(view)
    metrics, table = fit.metrics, fit.table
    r2 = "-" if metrics.r2 is None else f"{metrics.r2:.5f}"
    _line(out, "errors", f"R2 {r2}, MAPE {metrics.mape:.2%}, at most {metrics.max_relative_error:.1%}")
    _line(
        out,
        "",
        f"RMSE {_milliseconds(metrics.rmse_seconds)}, at most {_milliseconds(metrics.max_error_seconds)}; "
        f"squares of {fit.errors} errors minimised",
    )
    taken = f"{table.rows[1]:,} of {table.rows[0]:,} rows"
    _line(out, "measured", f"{metrics.samples:,} passes from {taken} of {table.source}")
    if fit.cross_validation is not None:
        _line(out, "form", fit.cross_validation.reason)
    _print_residuals(fit, out)
    for warning in fit.warnings:
        out.print(Text(f"  Warning: {warning}.", style="yellow"), soft_wrap=True)


def _formula(fit: RuntimeFit) -> str:
    work = {"seconds_per_token": "tokens", "seconds_per_flop": "FLOPs"}[fit.slope]
    if fit.form == "additive":
        return "additive, T = a new + b_compute (cached + new) new + b_read cached + c"
    if fit.form == "linear":
        return f"linear, T = c1 {work} + c2"
    first = "c" if fit.flat else f"a1 {work} + c1"
    return f"roofline, T = max({first}, a2 {work} + c2)"


def _coefficients(fit: RuntimeFit) -> list[tuple[str, float, float, float]]:
    names: list[str]
    if fit.form == "additive":
        names = list(COEFFICIENTS)
    elif fit.form == "linear":
        names = [fit.slope, "overhead_seconds"]
    else:
        names = [f"piece {piece}, {name}" for piece in (1, 2) for name in (fit.slope, "overhead_seconds")]
    columns = (fit.coefficients.ravel(), fit.lower.ravel(), fit.upper.ravel())
    return [(name, *map(float, row)) for name, *row in zip(names, *columns, strict=True)]  # type: ignore[misc]


def _print_residuals(fit: RuntimeFit, out: Console) -> None:
    """Print errors in groups of equal numbers of rows, from little work to much."""
    x = fit.inputs[:, 0]
    order = np.argsort(x, kind="stable")
    groups = [part for part in np.array_split(order, min(BINS, len(np.unique(x)))) if len(part)]
    widest = max(float(np.abs(fit.relative_errors[part].mean())) for part in groups)
    label = "new tokens" if fit.form == "additive" else "tokens" if fit.slope == "seconds_per_token" else "FLOPs"
    view = _table(f"  {label}", "mean error", "MAPE")
    view.add_column("predicted too fast | too slow", no_wrap=True)
    for part in groups:
        errors = fit.relative_errors[part]
        mean = float(errors.mean())
        marks = round(MARKS * abs(mean) / widest) if widest > 0.0 else 0
        bar = "#" * marks
        bar = f"{bar:>{MARKS}}|" if mean < 0.0 else f"{'':>{MARKS}}|{bar}"
        low, high = float(x[part].min()), float(x[part].max())
        view.add_row(f"  {low:.4g} to {high:.4g}", f"{mean:+.1%}", f"{np.abs(errors).mean():.1%}", bar)
    out.print(view)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.4g} ms"


def _table(*headers: str) -> Table:
    view = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for index, header in enumerate(headers):
        view.add_column(header, justify="right" if index else "left", no_wrap=True)
    return view


def _line(out: Console, label: str, text: str) -> None:
    out.print(Text(f"  {label:<10} {text}"), soft_wrap=True)
