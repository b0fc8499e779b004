"""Text display of a single result, of the judge's report, and of a table with several results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from specopt.api.claims import every_plan_has
from specopt.console.terminal import COLOURS, LABEL, Console, line, percent, table, title
from specopt.kinds.view import view_of
from specopt.models.judge import Report
from specopt.models.problem import Problem, problem_type
from specopt.models.result import GO_ON, Result

MIN_PREPARING_SECONDS = 0.2
"""Minimum time for preparing kernels that is shown separately, in seconds."""

# ---------------------------------------------------------------------------- one result


def print_result(problem: Problem, result: Result, out: Console) -> None:
    """Print a result with its plan."""
    print_outcome(result, out, problem)
    if result.plan is not None:
        view_of(problem).print_plan(problem, result.plan, out)


def print_outcome(result: Result, out: Console, known: Problem | None = None) -> None:
    """Print a result's status, objective with its terms, bound, gap and solution time.

    Parameters
    ----------
    result
        Result to print.
    out
        Console to print to.
    known
        Problem of the result; None to use the problem if it is still in memory.
    """
    problem = known or result.problem or problem_type(result.kind)
    status, ended = result.status, f" ({result.termination.value})"
    title(out, f"{problem.kind} by {result.by}: ", status.value, COLOURS[status], ended)
    if problem.name:
        line(out, "problem", problem.name)
    if result.objective is not None:
        line(out, "objective", f"{result.objective:.6g}  {problem.objective_label}")
    _print_terms(result.terms, out)
    if result.bound is not None:
        scale = problem.scale if isinstance(problem, Problem) else ()
        words = every_plan_has(problem_type(result.kind), scale)
        line(out, "bound", f"{result.bound:.6g}  {words} this")
    if result.gap is not None:
        line(out, "gap", percent(result.gap))
    unasked = result.stats.get("unasked")
    if unasked is not None and result.objective:
        changes = ", ".join(f"{name} {value}" for name, value in unasked["changes"].items())
        part = unasked["objective"] / result.objective - 1.0
        text = f"but {changes} would give {unasked['objective']:.6g} ({part:+.1%})"
        line(out, "not asked", f"{text}, by {unasked['method']}")
    preparing = float(result.stats.get("preparing_seconds", 0.0))
    apart = f", and {preparing:.3g} s preparing" if preparing >= MIN_PREPARING_SECONDS else ""
    line(out, "solved in", f"{result.seconds - (preparing if apart else 0.0):.3g} s{apart}")
    if apart and result.termination == "time_limit":
        again = f"once on this machine: solve again, or run `specopt warmup {problem.kind}` first"
        often = result.stats.get("no_cache", again)
        line(out, "hint", f"{preparing:.3g} s of the limit went into preparing kernels, {often}")
    if result.termination == "work_limit":
        line(out, "hint", GO_ON)
    if result.explanation:
        line(out, "why", result.explanation)
        helpful = result.conflict[0].least_change if result.conflict else {}
        if helpful:
            line(
                out,
                "would help",
                ", or ".join(f"{name} {value:,.12g}" for name, value in helpful.items()),
            )


def print_report(problem: Problem, claimed: Result, report: Report, out: Console) -> None:
    """Print the judge's report on a result."""
    word, colour = ("feasible", "green") if report.feasible else ("violated", "red")
    title(out, f"{problem.kind} plan by {claimed.method}: ", word, colour)
    if report.objective is not None:
        line(out, "objective", f"{report.objective:.6g}  {problem.objective_label}")
    _print_terms(report.terms, out)
    if not report.matches and report.objective is not None:
        line(out, "claimed", f"{claimed.objective:.12g}, which is not the objective of its plan")
    for violation in report.violations:
        line(out, "violates", violation)


def _print_terms(terms: Mapping[str, Any], out: Console) -> None:
    """Print the numeric terms of the objective. Other terms are shown with the plan."""
    terms = {name: value for name, value in terms.items() if isinstance(value, float)}
    labels = {name: f"  {name.removesuffix('_seconds').replace('_', ' ')}" for name in terms}
    width = max((LABEL, *map(len, labels.values())))
    for name, value in terms.items():
        line(out, labels[name], f"{value:.6g}", width)


# ---------------------------------------------------------------------------- several results


@dataclass(frozen=True)
class Entry:
    """A row of a table of several results.

    Parameters
    ----------
    label
        Label of the row.
    result
        Result whose objective was computed by the judge.
    certificate
        Whether the result's status, bound and gap apply to this row. They do not apply if the plan
        is judged on a problem other than the problem for which it was made.
    """

    label: str
    result: Result
    certificate: bool = True


def print_comparison(entries: Sequence[Entry], out: Console) -> None:
    """Print a table of results for one kind of problem.

    Each objective is compared with the first objective.
    """
    results = [entry.result for entry in entries]
    reference = next((result.objective for result in results if result.objective is not None), None)
    columns = view_of(results[0].kind).columns
    view = table("", "status", "objective", "gap", "vs first", *columns, "seconds", left=2)
    view.columns[0].no_wrap = False
    for entry, result in zip(entries, results, strict=True):
        status = result.status.value if entry.certificate else "judged"
        view.add_row(
            entry.label,
            Text(status, style=COLOURS[result.status] if entry.certificate else ""),
            "-" if result.objective is None else f"{result.objective:.3f}",
            "-" if result.gap is None or not entry.certificate else percent(result.gap),
            "-"
            if result.objective is None or not reference
            else f"{result.objective / reference - 1:+.1%}",
            *("-" if result.plan is None else show(result.plan) for show in columns.values()),
            f"{result.seconds:.2f}" if entry.certificate else "-",
        )
    out.print(view)
