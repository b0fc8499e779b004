"""Display of fronts, which are optima for several values of a field, as text and as charts."""

from __future__ import annotations

from rich.console import Console

from specopt.api.front import Front
from specopt.console.terminal import percent, table, title
from specopt.kinds.chart import TOOLTIP, Chart, Picture, category, layer, looks, quantity

PLAN, BOUND = "plan", "bound"


def print_front(found: Front, out: Console) -> None:
    """Print one row per value of the field."""
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
    """Return a chart of objective and bound against the field, and charts of other plan terms."""
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
    """Return the numeric terms of the plans, as one list of values per term.

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
