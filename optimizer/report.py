"""Readable summaries for the terminal: results, judgements, comparisons, methods."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rich.console import Console
from rich.table import Table
from rich.text import Text

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.models.fair_goodput import FairGoodputPlan, FairGoodputProblem
from specopt.models.problem import Plan, Problem
from specopt.models.prompt_chunking import PromptChunkingPlan, PromptChunkingProblem
from specopt.models.result import Result, Status
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.robustness import Robustness
from specopt.schedule import steps_per_batch
from specopt.solve import Report
from specopt.solvers.method import Method

MOST_ROWS = 40
MOST_ITEMS = 20
MOST_CHARACTERS = 240
PLAIN_WIDTH = 100
LABEL = 15
BAR_WIDTH = 40

_COLOURS = {Status.OPTIMAL: "green", Status.FEASIBLE: "cyan", Status.INFEASIBLE: "red", Status.NONE: "yellow"}


def console() -> Console:
    """Return a console on stdout; its width is fixed where no terminal says one."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)


# ---------------------------------------------------------------------------- one result


def print_result(problem: Problem, result: Result, out: Console) -> None:
    """Print a result: status, objective with its terms, bound, gap, seconds, and the plan."""
    title = Text(f"{problem.kind} by {result.method}: ")
    title.append(result.status.value, style=f"bold {_COLOURS[result.status]}")
    title.append(f" ({result.termination.value})")
    out.print(title, soft_wrap=True)
    if problem.name:
        _line(out, "problem", problem.name)
    if result.objective is not None:
        _line(out, "objective", f"{result.objective:.6g}  {problem.objective_label}")
    _print_terms(result.terms, out)
    if result.bound is not None:
        word = "at least" if problem.sense == "minimize" else "at most"
        _line(out, "bound", f"{result.bound:.6g}  every plan has {word} this")
    if result.gap is not None:
        _line(out, "gap", percent(result.gap))
    _line(out, "solved in", f"{result.seconds:.3g} s")
    if result.explanation:
        _line(out, "why", result.explanation)
    if isinstance(problem, ServingLatencyProblem) and isinstance(result.plan, ServingLatencyPlan):
        _print_serving_plan(problem, result.plan, out)
    elif isinstance(problem, FairGoodputProblem) and isinstance(result.plan, FairGoodputPlan):
        _print_fair_plan(problem, result.plan, out)
    elif isinstance(problem, DraftControlProblem) and isinstance(result.plan, DraftControlPlan):
        _print_policy(problem, result.plan, out)
    elif isinstance(problem, PromptChunkingProblem) and isinstance(result.plan, PromptChunkingPlan):
        _print_chunks(problem, result.plan, out)
    elif result.plan is not None:
        _print_plan(result.plan, out)


def print_report(problem: Problem, claimed: Result, report: Report, out: Console) -> None:
    """Print what the judge says of a result."""
    word, colour = ("feasible", "green") if report.feasible else ("violated", "red")
    title = Text(f"{problem.kind} plan by {claimed.method}: ")
    title.append(word, style=f"bold {colour}")
    out.print(title, soft_wrap=True)
    if report.objective is not None:
        _line(out, "objective", f"{report.objective:.6g}  {problem.objective_label}")
    _print_terms(report.terms, out)
    if not report.matches and report.objective is not None:
        _line(out, "claimed", f"{claimed.objective:.12g}, which is not the objective of its plan")
    for violation in report.violations:
        _line(out, "violates", violation)


def print_robustness(problem: Problem, over: Robustness, out: Console) -> None:
    """Print what a plan is worth over intervals."""
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
    _line(out, "worst case", f"{over.worst.objective:.6g}  {', '.join(where)}{word}")
    low, high = over.interval
    _line(out, "mean", f"{over.mean:.6g}  95 % interval {low:.6g} to {high:.6g}, {over.samples} samples")
    _line(out, "quantiles", ", ".join(f"{100 * q:g} %: {value:.6g}" for q, value in over.quantiles.items()))
    if over.violated:
        _line(out, "violated", f"in {over.violated} of {over.samples} samples")
    for violation in over.worst.violations:
        _line(out, "  worst case", violation)


def _print_terms(terms: Mapping[str, float], out: Console) -> None:
    labels = {name: f"  {name.removesuffix('_seconds').replace('_', ' ')}" for name in terms}
    width = max((LABEL, *map(len, labels.values())))
    for name, value in terms.items():
        _line(out, labels[name], f"{value:.6g}", width)


def _line(out: Console, label: str, text: str, width: int = LABEL) -> None:
    out.print(Text(f"  {label:<{width}} {text}"), soft_wrap=True)


def _print_plan(plan: Plan, out: Console) -> None:
    """Print a plan of any kind, a line per field; long ones are cut."""
    for name, value in plan.to_dict().items():
        text = str(value)
        if isinstance(value, list):
            shown = " ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value[:MOST_ITEMS])
            text = shown if len(value) <= MOST_ITEMS else f"{shown} ... ({len(value):,} in all)"
        if len(text) > MOST_CHARACTERS:
            text = text[: MOST_CHARACTERS - 4] + " ..."
        _line(out, name.replace("_", " "), text)


def _print_serving_plan(problem: ServingLatencyProblem, plan: ServingLatencyPlan, out: Console) -> None:
    mechanism = problem.mechanism_of(plan)
    _line(out, "mechanism", mechanism)
    if mechanism != "autoregressive":
        _line(out, "speculation", f"{plan.speculation_length} draft tokens per step")
    _line(out, "batches", f"{len(plan.batches)} in pipeline order, {problem.tasks} tasks")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  batch", justify="right")
    for header in ("tasks", "padded input", "padding", "steps"):
        table.add_column(header, justify="right")
    table.add_column("first tasks", no_wrap=True, overflow="ellipsis")
    steps = steps_per_batch(problem, plan)
    for position, batch in enumerate(plan.batches[:MOST_ROWS]):
        inputs = problem.input_tokens[list(batch)]
        padded = int(inputs.max())
        waste = 1.0 - float(inputs.sum()) / (padded * len(batch))
        names = " ".join(map(str, batch[:6])) + (" ..." if len(batch) > 6 else "")
        table.add_row(str(position + 1), str(len(batch)), str(padded), f"{waste:.0%}", str(steps[position]), names)
    out.print(table)
    if len(plan.batches) > MOST_ROWS:
        out.print(f"  ... and {len(plan.batches) - MOST_ROWS} more batches")


def _print_fair_plan(problem: FairGoodputProblem, plan: FairGoodputPlan, out: Console) -> None:
    unit = f"tokens per {problem.per}"
    _line(out, "goodput", f"{plan.goodput.sum():.6g} {unit} in all, {problem.clients:,} clients")
    _line(out, "draft tokens", f"{plan.mean_draft_tokens.sum():.6g} of {problem.budget_tokens:,} per round")
    shares = "time" if problem.per == "second" else "rounds"
    _line(
        out, "schedule", f"{len(plan.schedule):,} allocations by shares of {shares}, {plan.schedule.changes:,} changes"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("  client", "acceptance", unit, "mean drafts"):
        table.add_column(header, justify="right")
    columns = (problem.acceptance_rates, plan.goodput, plan.mean_draft_tokens)
    for client, (rate, goodput, drafts) in enumerate(zip(*(c[:MOST_ROWS].tolist() for c in columns), strict=True)):
        table.add_row(str(client), f"{rate:.4g}", f"{goodput:.6g}", f"{drafts:.4g}")
    out.print(table)
    if problem.clients > MOST_ROWS:
        out.print(f"  ... and {problem.clients - MOST_ROWS:,} more clients")


def _print_policy(problem: DraftControlProblem, plan: DraftControlPlan, out: Console) -> None:
    shares = problem.stationary_distribution.tolist()
    resolutions = problem.resolutions.tolist()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("  state", "share", "uplink bit/s", "acceptance", "draft length", "resolution"):
        table.add_column(header, justify="right")
    for index, choice in enumerate(plan.policy[:MOST_ROWS]):
        state = problem.states[index]
        cells = (str(index), f"{shares[index]:.2%}", f"{state.uplink_bits_per_second:.4g}")
        if choice.draft_length:
            rate = state.acceptance_rates[resolutions.index(choice.resolution)]
            table.add_row(*cells, f"{rate:.4g}", str(choice.draft_length), str(choice.resolution))
        else:
            table.add_row(*cells, "", "0", "")
    out.print(table)
    if len(plan.policy) > MOST_ROWS:
        out.print(f"  ... and {len(plan.policy) - MOST_ROWS} more states")


def _print_chunks(problem: PromptChunkingProblem, plan: PromptChunkingPlan, out: Console) -> None:
    """Print the chunks and when they pass through uplink, cloud and downlink, to scale."""
    times = problem.timeline(plan)
    scale = BAR_WIDTH / (times[-1].download[1] or 1.0)
    _line(
        out, "chunks", f"{len(times):,} of {problem.prompt_tokens:,} tokens; u uploading, c in the cloud, d downloading"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("  chunk", "tokens", "uploaded s", "processed s", "downloaded s"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("0" + f"{times[-1].download[1]:.3g} s".rjust(BAR_WIDTH - 1), no_wrap=True)
    for position, chunk in enumerate(times[:MOST_ROWS]):
        bar = [" "] * BAR_WIDTH
        cloud = (chunk.stages[0][0], chunk.stages[-1][1])
        for mark, (begin, end) in (("u", chunk.upload), ("c", cloud), ("d", chunk.download)):
            first = min(int(begin * scale), BAR_WIDTH - 1)
            for column in range(first, min(max(first + 1, round(end * scale)), BAR_WIDTH)):
                bar[column] = mark
        ends = (chunk.upload[1], cloud[1], chunk.download[1])
        table.add_row(str(position + 1), str(chunk.tokens), *(f"{end:.4f}" for end in ends), "".join(bar))
    out.print(table)
    if len(times) > MOST_ROWS:
        out.print(f"  ... and {len(times) - MOST_ROWS:,} more chunks")


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
            Text(status, style=_COLOURS[result.status] if row.certificate else ""),
            "-" if result.objective is None else f"{result.objective:.3f}",
            "-" if result.gap is None or not row.certificate else percent(result.gap),
            "-" if result.objective is None or not reference else f"{result.objective / reference - 1:+.1%}",
            "-" if serving is None else str(serving.speculation_length),
            "-" if serving is None else str(len(serving.batches)),
            f"{result.seconds:.2f}" if row.certificate else "-",
        )
    out.print(table)


def percent(share: float) -> str:
    """Return a share as a percentage; a positive one is never rounded to zero.

    Examples
    --------
    >>> percent(0.0), percent(0.0123), percent(1e-9)
    ('0 %', '1.23 %', '<0.01 %')
    """
    if share == 0:
        return "0 %"
    if abs(share) > 100.0:
        return ">10000 %"
    return "<0.01 %" if abs(share) < 5e-5 else f"{share:.2%}".replace("%", " %")


# ---------------------------------------------------------------------------- methods


def method_entry(method: type[Method]) -> dict[str, Any]:
    """Return what is known of a method as JSON-like data."""
    hints = get_type_hints(method)
    return {
        "kind": method.solves.kind,
        "name": method.name,
        "summary": (method.__doc__ or "").partition("\n")[0],
        "source": method.source,
        "guarantee": method.guarantee,
        "complexity": method.complexity,
        "exact": method.exact,
        "max_size": method.max_size,
        "size_unit": method.size_unit,
        "mechanisms": list(getattr(method, "mechanisms", ())),
        "output_lengths": list(getattr(method, "output_lengths", ())),
        "supports_warm_start": method.supports_warm_start,
        "requires": list(method.requires),
        "options": [
            {"name": field.name, "type": _type_name(hints[field.name]), "default": field.default}
            for field in dataclasses.fields(method)
        ],
    }


def print_methods(entries: Sequence[dict[str, Any]], out: Console) -> None:
    """Print the entries of methods below each other."""
    kind = None
    for entry in entries:
        if entry["kind"] != kind:
            kind = entry["kind"]
            out.print(Text(kind, style="bold"))
        title = Text(f"\n  {entry['name']}", style="bold cyan" if entry["exact"] else "bold")
        title.append(f"  {'exact' if entry['exact'] else 'heuristic'}", style="green" if entry["exact"] else "default")
        out.print(title)
        options = ", ".join(f"{o['name']}={o['default']} ({o['type']})" for o in entry["options"])
        lengths = " or ".join(entry["output_lengths"])
        takes = [", ".join(entry["mechanisms"]), f"{lengths} output lengths" if lengths else ""]
        size = f"at most {entry['max_size']:,} {entry['size_unit']}" if entry["max_size"] else None
        details = Table.grid(padding=(0, 2, 0, 0))
        details.add_column(min_width=13, no_wrap=True)
        details.add_column()
        for label, text in (
            ("", entry["summary"]),
            ("source", entry["source"]),
            ("guarantee", entry["guarantee"]),
            ("complexity", entry["complexity"]),
            ("takes", "; ".join(part for part in takes if part.strip())),
            ("size", size),
            ("options", options),
        ):
            if text:
                details.add_row(Text(f"    {label}"), Text(str(text)))
        out.print(details)


def _type_name(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join("none" if part is NoneType else _type_name(part) for part in get_args(hint))
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
