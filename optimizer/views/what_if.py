"""Display of robustness, sensitivity and fronts.

Robustness and sensitivity are shown as text, and fronts are shown as text and as charts. A front
contains the optima for several values of a field.
"""

from __future__ import annotations

from rich.text import Text

from specopt.api.robustness import Robustness
from specopt.api.what_if import Change, Front, Sensitivity
from specopt.console.terminal import Console, line, percent, table, title
from specopt.kinds.chart import TOOLTIP, Chart, Picture, category, layer, looks, quantity
from specopt.models.problem import problem_type

PLAN, BOUND = "plan", "bound"


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


def print_front(found: Front, out: Console) -> None:
    """Print a front as a table with one row per value of the field."""
    problem = found.problem
    title(
        out,
        f"{problem.kind} along {found.field}: ",
        f"{problem.objective_label}, {found.seconds:.3g} s",
    )
    view = table(f"  {found.field}", "objective", "bound", "gap", "seconds", left=1)
    view.add_column("by", overflow="fold")
    for value, result in zip(found.values, found.results, strict=True):
        view.add_row(
            _point(value),
            "-" if result.objective is None else f"{result.objective:.6g}",
            "-" if result.bound is None else f"{result.bound:.6g}",
            "-" if result.gap is None else percent(result.gap),
            f"{result.seconds:.3g}",
            result.explanation or result.by,
        )
    out.print(view)
    others = _other_terms(found)
    if others:
        out.print()
        view = table("  of these plans", *map(_words, others), left=1)
        for value, *numbers in zip(found.values, *others.values(), strict=True):
            view.add_row(_point(value), *("-" if one is None else f"{one:.6g}" for one in numbers))
        out.print(view)


def front_picture(found: Front) -> Picture:
    """Return charts of the objective, bound and other terms of a front's plans against the
    field.
    """
    label = found.problem.objective_label
    rows = [
        {found.field: value, label: figure, "line": name}
        for value, result in zip(found.values, found.results, strict=True)
        for name, figure in ((PLAN, result.objective), (BOUND, result.bound))
        if figure is not None
    ]
    name = found.field.replace(".", "\\.")
    numbers = all(isinstance(value, int | float) for value in found.values)
    x = (
        quantity(name, title=found.field, scale={"zero": False})
        if numbers
        else category(name, title=found.field)
    )
    mark = {"type": "line", "point": True, "strokeWidth": 2, "tooltip": TOOLTIP}
    lines = layer(
        mark, x=x, y=quantity(label, scale={"zero": False}), **looks("line", [PLAN, BOUND])
    )
    charts = [Chart(title=f"{found.problem.kind} along {found.field}", rows=rows, spec=lines)]
    for term, of in _other_terms(found).items():
        known = [
            {found.field: value, _words(term): one}
            for value, one in zip(found.values, of, strict=True)
            if one is not None
        ]
        drawn = layer(mark, x=x, y=quantity(_words(term), scale={"zero": False}))
        charts.append(
            Chart(title=f"{_words(term)} of these plans".capitalize(), rows=known, spec=drawn)
        )
    return Picture(charts)


def _other_terms(found: Front) -> dict[str, list[float | None]]:
    """Return the numeric terms of the plans as one list of values per term.

    Terms that are always 0 or equal the objective are omitted.
    """
    names = dict.fromkeys(name for result in found.results for name in result.terms)
    columns = {
        name: [
            value if isinstance(value := result.terms.get(name), int | float) else None
            for result in found.results
        ]
        for name in names
    }
    objective = [result.objective for result in found.results]
    return {name: of for name, of in columns.items() if any(of) and of != objective}


def _point(value: object) -> str:
    return f"  {value:g}" if isinstance(value, float) else f"  {value}"


def _words(term: str) -> str:
    return term.replace("_", " ")
