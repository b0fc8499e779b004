"""Display of public values as text, as HTML for notebooks, and as pictures."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any

from specopt.api.claims import certificate
from specopt.api.robustness import Robustness
from specopt.api.simulate import PolicyComparison
from specopt.api.what_if import Front, Sensitivity
from specopt.comparison.profiles import profile_figure
from specopt.comparison.report import print_comparison_summary
from specopt.comparison.summary import tables_of
from specopt.comparison.table import Comparison
from specopt.console.terminal import LABEL, Console, console, line, table_of, title
from specopt.kinds.chart import Picture
from specopt.kinds.view import field_lines, view_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.judge import Report
from specopt.models.problem import Plan, Problem
from specopt.models.result import Result
from specopt.report.markup import facts, items, paragraph, shown, spaced, table
from specopt.report.result import figures, plan_rows
from specopt.solvers.simulation import Simulation
from specopt.views.result import print_outcome
from specopt.views.simulation import print_simulation
from specopt.views.what_if import front_picture, print_front, print_robustness, print_sensitivity

MAX_PLAN_LINES = 5
"""Maximum number of plan fields shown when a result is printed."""


def in_text(value: Any) -> str:
    """Return the string that `print` shows for a value."""
    text = io.StringIO()
    print_value(value, console(text))
    return text.getvalue().rstrip("\n")


@singledispatch
def print_value(value: Any, out: Console) -> None:
    """Print the fields of a value of any type, one per line."""
    title(out, "", type(value).__name__)
    _print_lines(field_lines(value.to_dict()), out)


def _print_lines(lines: Sequence[tuple[str, str]], out: Console) -> None:
    width = max((LABEL, *(len(name) for name, _ in lines)))
    for name, text in lines:
        line(out, name, text, width)


@print_value.register
def _(value: Result, out: Console) -> None:
    print_outcome(value, out)
    if value.plan is not None:
        _print_lines(field_lines(value.plan.to_dict())[:MAX_PLAN_LINES], out)


@print_value.register
def _(value: Report, out: Console) -> None:
    word, colour = ("feasible", "green") if value.feasible else ("violated", "red")
    title(out, "plan: ", word, colour)
    _print_lines([(name, shown(fact)) for name, fact in _facts_of(value)], out)
    for violation in value.violations:
        line(out, "violates", violation)


@print_value.register
def _(value: PolicyComparison, out: Console) -> None:
    rows = [
        {
            "world": row["world"],
            "policy": row["policy"],
            row["quantity"]: row["mean"],
            "95 % interval": f"{row['mean_low']:.5g} to {row['mean_high']:.5g}",
            "difference": row["difference"],
            "of the difference": f"{row['difference_low']:.5g} to {row['difference_high']:.5g}",
        }
        for row in value.rows
    ]
    out.print(table_of(rows, shown))


print_value.register(Comparison, print_comparison_summary)
print_value.register(Front, print_front)
print_value.register(Robustness, print_robustness)
print_value.register(Sensitivity, print_sensitivity)
print_value.register(Simulation, print_simulation)


def in_notebook(value: Any) -> str:
    """Return the HTML that a notebook shows for a value."""
    if isinstance(value, Result):
        problem = value.problem
        said = map(paragraph, certificate(value, problem))
        parts = [*said, figures(value, problem), plan_rows(value)]
    else:
        found = list(_facts_of(value))
        parts = [facts(found)] if found else []
        parts += [table(rows, caption) for caption, rows in _tables_of(value).items()]
        parts.append(items(value.violations) if isinstance(value, Report) else "")
    return f"<div class=specopt>{''.join(parts)}</div>"


def _facts_of(value: Any) -> Iterable[tuple[str, object]]:
    """Return the numbers and strings contained in a value, as (name, value) pairs."""
    if isinstance(value, Report):
        return [
            ("feasible", value.feasible),
            ("objective", value.objective),
            *spaced(value.terms).items(),
        ]
    if isinstance(value, (Plan, Problem, Robustness)):
        return field_lines(value.to_dict())
    return []


def _tables_of(value: Any) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return a mapping from captions to the tables in a value."""
    if isinstance(value, Comparison):
        return tables_of(value)
    if isinstance(value, Front):
        return {f"{value.problem.kind} along {value.field}": value.rows()}
    if isinstance(value, PolicyComparison):
        return {"policies": value.rows}
    if isinstance(value, Sensitivity):
        return {"one more unit": [dataclasses.asdict(change) for change in value.changes]}
    if isinstance(value, Simulation):
        rows = [
            {
                "quantity": name,
                "mean": one.mean,
                **{f"{q:.0%}": x for q, x in one.quantiles.items()},
            }
            for name, one in value.estimates.items()
        ]
        return {f"{value.kind}: {value.replications} replications of {value.policy}": rows}
    return {}


def picture(value: Problem | Front | Comparison, plan: Plan | Result | None = None) -> Picture:
    """Return charts of a problem's plan, of a front, or of a comparison's profiles.

    Raises
    ------
    InvalidInput
        If the plan is missing, belongs to another problem or is infeasible, or there are no charts
        for plans of this kind.
    """
    if isinstance(value, Front):
        return front_picture(value)
    if isinstance(value, Comparison):
        return profile_figure(value)
    plan = plan.plan if isinstance(plan, Result) else plan
    if not isinstance(plan, value.plan_type):
        raise InvalidInput(
            f"plan: expected a plan for a {value.kind} problem, got {describe(plan)}"
        )
    violations = value.violations(plan)
    if violations:
        raise InvalidInput(f"plan: the plan is not feasible: {violations[0]}")
    charts = view_of(value).charts
    if charts is None:
        raise InvalidInput(f"plan: there are no charts for {value.kind} plans")
    return Picture(tuple(charts(value, plan)))
