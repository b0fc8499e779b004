"""The optimum along a field: for the terminal, and as a chart."""

from __future__ import annotations

from rich.console import Console

from specopt.api.front import Front
from specopt.views.chart import TOOLTIP, Chart, Picture, category, layer, looks, quantity
from specopt.views.terminal import percent, table, title

PLAN, BOUND = "plan", "bound"


def print_front(found: Front, out: Console) -> None:
    """Print a row per point."""
    problem = found.problem
    title(out, f"{problem.kind} along {found.field}: ", f"{problem.objective_label}, {found.seconds:.3g} s")
    view = table(f"  {found.field}", "objective", "bound", "gap", "seconds", left=1)
    view.add_column("by", overflow="fold")
    for value, result in zip(found.values, found.results, strict=True):
        view.add_row(
            f"  {value:g}" if isinstance(value, float) else f"  {value}",
            "-" if result.objective is None else f"{result.objective:.6g}",
            "-" if result.bound is None else f"{result.bound:.6g}",
            "-" if result.gap is None else percent(result.gap),
            f"{result.seconds:.3g}",
            result.explanation or result.by,
        )
    out.print(view)


def front_picture(found: Front) -> Picture:
    """Return plan and bound along the field."""
    label = found.problem.objective_label
    rows = [
        {found.field: value, label: figure, "what": what}
        for value, result in zip(found.values, found.results, strict=True)
        for what, figure in ((PLAN, result.objective), (BOUND, result.bound))
        if figure is not None
    ]
    name = found.field.replace(".", "\\.")
    numbers = all(isinstance(value, int | float) for value in found.values)
    x = quantity(name, title=found.field, scale={"zero": False}) if numbers else category(name, title=found.field)
    mark = {"type": "line", "point": True, "strokeWidth": 2, "tooltip": TOOLTIP}
    lines = layer(mark, x=x, y=quantity(label, scale={"zero": False}), **looks("what", [PLAN, BOUND]))
    return Picture((Chart(title=f"{found.problem.kind} along {found.field}", rows=rows, spec=lines),))
