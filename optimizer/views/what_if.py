"""Display of the robustness and sensitivity of plans as text."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from specopt.api.robustness import Robustness
from specopt.api.sensitivity import Change, Sensitivity
from specopt.console.terminal import line, percent, table, title
from specopt.models.problem import problem_type


def print_robustness(over: Robustness, out: Console) -> None:
    """Print the performance of a plan over intervals of uncertain values."""
    ranges = [f"output lengths x {over.output_scale[0]:g} to {over.output_scale[1]:g}"]
    if over.output_scale == (1.0, 1.0):
        ranges = []
    if over.acceptance is not None:
        ranges.insert(0, f"acceptance {over.acceptance[0]:g} to {over.acceptance[1]:g}")
    out.print(Text(f"over {', '.join(ranges)}", style="bold"), soft_wrap=True)
    where = [] if over.worst.acceptance is None else [f"at acceptance {over.worst.acceptance:.6g}"]
    if over.output_scale != (1.0, 1.0):
        where.append(f"output lengths x {over.worst.output_scale:g}")
    word = "" if over.worst_is_exact else " of those tried"
    line(out, "worst case", f"{over.worst.objective:.6g}  {', '.join(where)}{word}")
    low, high = over.interval
    line(
        out,
        "mean",
        f"{over.mean:.6g}  95 % interval {low:.6g} to {high:.6g}, {over.samples} samples",
    )
    line(
        out,
        "quantiles",
        ", ".join(f"{100 * q:g} %: {value:.6g}" for q, value in over.quantiles.items()),
    )
    if over.violated:
        line(out, "violated", f"in {over.violated} of {over.samples} samples")
    for violation in over.worst.violations:
        line(out, "  worst case", violation)


def print_sensitivity(found: Sensitivity, out: Console) -> None:
    """Print the effect of one more unit of each resource on the optimum."""
    base = found.base
    problem = base.problem or problem_type(base.kind)
    title(out, f"{base.kind}: value of one more unit, ", f"solved again by {base.method}")
    if problem.name:
        line(out, "problem", problem.name)
    if base.objective is not None:
        gap = "" if base.gap is None else f", gap {percent(base.gap)}"
        line(
            out,
            "objective",
            f"{base.objective:.6g}  {problem.objective_label}, {base.status.value}{gap}",
        )
    if base.explanation:
        line(out, "why", base.explanation)
    view = table("  one more unit", "objective", "change", "%", left=1)
    view.add_column("certainty", overflow="fold")
    for change in found.changes:
        view.add_row(
            f"  {change.unit}",
            "-" if change.after is None else f"{change.after:.6g}",
            "-" if change.change is None else f"{change.change:+.4g}",
            "-" if change.percent is None else f"{change.percent:+.3g}",
            _certainty(change),
        )
    out.print(view)
    out.print(f"  finite differences on re-solved optima, {found.seconds:.3g} s", soft_wrap=True)


def _certainty(change: Change) -> str:
    if change.explanation is not None:
        return change.explanation
    if change.proven:
        return "proven"
    low, high = change.bounds
    if low is None and high is None:
        return "unknown: no bound"
    parts = [
        "" if low is None else f"at least {low:+.4g}",
        "" if high is None else f"at most {high:+.4g}",
    ]
    return ", ".join(part for part in parts if part)
