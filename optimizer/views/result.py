"""Results for the terminal: one, judged by the judge, several below each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.models.fair_goodput import FairGoodputPlan, FairGoodputProblem
from specopt.models.judge import Report
from specopt.models.problem import Plan, Problem
from specopt.models.prompt_chunking import PromptChunkingPlan, PromptChunkingProblem
from specopt.models.result import Result
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.views import draft_control, fair_goodput, prompt_chunking, serving_latency
from specopt.views.terminal import COLOURS, LABEL, line, percent

MOST_ITEMS = 20
MOST_CHARACTERS = 240


# ---------------------------------------------------------------------------- one result


def print_result(problem: Problem, result: Result, out: Console) -> None:
    """Print a result: status, objective with its terms, bound, gap, seconds, and the plan."""
    title = Text(f"{problem.kind} by {result.method}: ")
    title.append(result.status.value, style=f"bold {COLOURS[result.status]}")
    title.append(f" ({result.termination.value})")
    out.print(title, soft_wrap=True)
    if problem.name:
        line(out, "problem", problem.name)
    if result.objective is not None:
        line(out, "objective", f"{result.objective:.6g}  {problem.objective_label}")
    _print_terms(result.terms, out)
    if result.bound is not None:
        word = "at least" if problem.sense == "minimize" else "at most"
        line(out, "bound", f"{result.bound:.6g}  every plan has {word} this")
    if result.gap is not None:
        line(out, "gap", percent(result.gap))
    line(out, "solved in", f"{result.seconds:.3g} s")
    if result.explanation:
        line(out, "why", result.explanation)
    if isinstance(problem, ServingLatencyProblem) and isinstance(result.plan, ServingLatencyPlan):
        serving_latency.print_plan(problem, result.plan, out)
    elif isinstance(problem, FairGoodputProblem) and isinstance(result.plan, FairGoodputPlan):
        fair_goodput.print_plan(problem, result.plan, out)
    elif isinstance(problem, DraftControlProblem) and isinstance(result.plan, DraftControlPlan):
        draft_control.print_plan(problem, result.plan, out)
    elif isinstance(problem, PromptChunkingProblem) and isinstance(result.plan, PromptChunkingPlan):
        prompt_chunking.print_plan(problem, result.plan, out)
    elif result.plan is not None:
        _print_plan(result.plan, out)


def print_report(problem: Problem, claimed: Result, report: Report, out: Console) -> None:
    """Print what the judge says of a result."""
    word, colour = ("feasible", "green") if report.feasible else ("violated", "red")
    title = Text(f"{problem.kind} plan by {claimed.method}: ")
    title.append(word, style=f"bold {colour}")
    out.print(title, soft_wrap=True)
    if report.objective is not None:
        line(out, "objective", f"{report.objective:.6g}  {problem.objective_label}")
    _print_terms(report.terms, out)
    if not report.matches and report.objective is not None:
        line(out, "claimed", f"{claimed.objective:.12g}, which is not the objective of its plan")
    for violation in report.violations:
        line(out, "violates", violation)


def _print_terms(terms: Mapping[str, float], out: Console) -> None:
    labels = {name: f"  {name.removesuffix('_seconds').replace('_', ' ')}" for name in terms}
    width = max((LABEL, *map(len, labels.values())))
    for name, value in terms.items():
        line(out, labels[name], f"{value:.6g}", width)


def _print_plan(plan: Plan, out: Console) -> None:
    """Print a plan of any kind, a line per field; long ones are cut."""
    for name, value in plan.to_dict().items():
        text = str(value)
        if isinstance(value, list):
            shown = " ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value[:MOST_ITEMS])
            text = shown if len(value) <= MOST_ITEMS else f"{shown} ... ({len(value):,} in all)"
        if len(text) > MOST_CHARACTERS:
            text = text[: MOST_CHARACTERS - 4] + " ..."
        line(out, name.replace("_", " "), text)


# ---------------------------------------------------------------------------- several results


@dataclass(frozen=True)
class Row:
    """One line of a comparison.

    Parameters
    ----------
    label
        What the line shows.
    result
        Its result; the objective is the judge's.
    certificate
        Whether status, bound and gap of the result say something about this line: not for a plan that was made
        for another problem than the one it is judged on.
    """

    label: str
    result: Result
    certificate: bool = True


def print_comparison(rows: Sequence[Row], out: Console, reference: float | None = None) -> None:
    """Print several results below each other, their objectives also relative to one of them.

    Parameters
    ----------
    rows
        The lines, in order.
    out
        Where to print.
    reference
        Objective that the others are compared with; the first line's if None.
    """
    if reference is None:
        reference = next((row.result.objective for row in rows if row.result.objective is not None), None)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")  # the only column that may wrap
    table.add_column("status", no_wrap=True)
    for header in ("objective", "gap", "vs first", "l", "batches", "seconds"):
        table.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        result, plan = row.result, row.result.plan
        serving = plan if isinstance(plan, ServingLatencyPlan) else None
        status = result.status.value if row.certificate else "judged"
        table.add_row(
            row.label,
            Text(status, style=COLOURS[result.status] if row.certificate else ""),
            "-" if result.objective is None else f"{result.objective:.3f}",
            "-" if result.gap is None or not row.certificate else percent(result.gap),
            "-" if result.objective is None or not reference else f"{result.objective / reference - 1:+.1%}",
            "-" if serving is None else str(serving.speculation_length),
            "-" if serving is None else str(len(serving.batches)),
            f"{result.seconds:.2f}" if row.certificate else "-",
        )
    out.print(table)
