"""Pages for results, which show the certificate and the plan.

If the problem is known, a page also contains the judge's report and charts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from specopt.api.claims import certificate, every_plan_has, without_refuted_claims
from specopt.console.terminal import percent
from specopt.kinds import kind_of
from specopt.kinds.view import view_of
from specopt.models.errors import InvalidInput
from specopt.models.judge import verify
from specopt.models.problem import Problem
from specopt.models.result import Result, Status
from specopt.report.markup import (
    MAX_OPEN_ROWS,
    MAX_ROWS,
    facts,
    folded,
    items,
    paragraph,
    section,
    spaced,
    table,
    text,
)
from specopt.report.page import Page, article, figure

NOT_JUDGED = (
    "The claims of the file were not checked, because {}. --problem FILE judges the plan again and"
    " draws it."
)

MAX_CHARACTERS = 4000
"""Maximum number of characters of a plan's JSON form that a page shows."""

COUNTED_ROWS = 20 * MAX_ROWS
"""Maximum number of rows of a plan that are counted exactly."""


def results_page(pages: Sequence[Page], sources: tuple[str, ...]) -> Page:
    """Return a page that combines several results.

    `pages` contains the page for each result.
    """
    unchecked = sum(not page.row["judged"] for page in pages)
    proven = sum(page.good is True and page.row["judged"] for page in pages)
    return Page(
        title=f"{len(pages)} results",
        lead=[f"{proven} of {len(pages)} results are proven optimal; not checked: {unchecked}."],
        body=[table([page.row for page in pages], "Results"), *map(article, pages)],
        sources=sources,
        noted=[file for page in pages for file in page.noted],
    )


def result_page(
    result: Result,
    problem: Problem | None,
    sources: tuple[str, ...],
    missing: str = "it names no problem file",
) -> Page:
    """Return the page for a result.

    Parameters
    ----------
    result
        Result to show.
    problem
        Problem of the result. If None, the plan and the objective are shown as claimed.
    sources
        Files that contain the result and the problem.
    missing
        Reason why the problem is None.

    Raises
    ------
    InvalidInput
        If the result belongs to another problem.
    """
    judged = None if problem is None or result.plan is None else verify(problem, result)
    result, refuted = without_refuted_claims(result, problem, judged)
    name = problem.name if problem is not None else None
    body = []
    if problem is not None and judged is not None and judged.feasible:
        charts = view_of(problem).charts
        if charts is not None:
            drawn = (figure(chart, is_summary=True) for chart in charts(problem, result.plan))
            body.append(section("The plan", *drawn))
    if result.plan is not None:
        body.append(section("The plan row by row", plan_rows(result)))
    body.append(section("How it was found", *_run(result)))
    violations = [] if judged is None else judged.violations
    if violations:
        result = replace(result, gap=None)
    status = "violated" if violations else result.status.value
    lead = (
        [f"The plan violates its problem: {'; '.join(violations[:5])}."]
        if violations
        else [*refuted, *certificate(result, problem)]
    )
    if problem is None:
        lead.append(NOT_JUDGED.format(missing))
    elif judged is not None and not violations:
        lead.append("Judged again from the problem's data alone: the plan violates nothing.")
        if not judged.matches:
            lead.append(
                "The objective that the file claims is not that of its plan; this page shows the"
                " judge's objective."
            )
    return Page(
        title=f"{result.kind}{f': {name}' if name else ''}, planned by {result.by}",
        lead=lead,
        body=[figures(result, problem, status), *body],
        sources=sources,
        good=(
            False
            if violations or refuted or result.plan is None
            else result.status is Status.OPTIMAL or None
        ),
        row={
            "file": ", ".join(sources),
            "kind": result.kind,
            "method": result.by,
            "status": status,
            "objective": result.objective,
            "bound": result.bound,
            "gap (%)": None if result.gap is None else 100.0 * result.gap,
            "seconds": result.seconds,
            "judged": judged is not None,
        },
    )


def figures(result: Result, problem: Problem | None = None, status: str | None = None) -> str:
    """Format the status, objective, bound, gap and terms of a result as HTML."""
    kind = kind_of(result.kind).problem
    pairs: list[tuple[str, object]] = [
        ("status", status or result.status.value),
        ((problem or kind).objective_label, result.objective),
        (every_plan_has(kind, problem.scale if problem else ()), result.bound),
        ("gap", None if result.gap is None else percent(result.gap)),
        *((name, term) for name, term in spaced(result.terms).items() if isinstance(term, float)),
    ]
    return facts((name, value) for name, value in pairs if value is not None)


def plan_rows(result: Result) -> str:
    """Format a result's plan as HTML, both as a table and as JSON."""
    if result.plan is None:
        return ""
    try:
        found = kind_of(result.kind).rows(result.plan)
        rows = [spaced(row) for row in islice(found, COUNTED_ROWS + 1)]
    except InvalidInput as error:
        return paragraph(str(error))
    source = json.dumps(result.plan.to_dict())
    if len(source) > MAX_CHARACTERS:
        source = f"{source[:MAX_CHARACTERS]} ..."
    many = f"more than {COUNTED_ROWS:,}" if len(rows) > COUNTED_ROWS else f"{len(rows):,}"
    content = table(rows[:MAX_ROWS], f"The plan, up to {MAX_ROWS:,} rows")
    title = f"The plan as a table ({many} rows)"
    return folded(title, content, len(rows) <= MAX_OPEN_ROWS) + folded(
        f"The plan as JSON, up to {MAX_CHARACTERS:,} characters", f"<pre>{text(source)}</pre>"
    )


def _run(result: Result) -> list[str]:
    preparing = float(result.stats.get("preparing_seconds", 0.0))
    pairs: list[tuple[str, object]] = [
        ("method", result.by),
        ("ended", result.termination.value.replace("_", " ")),
        ("seconds solving", max(0.0, result.seconds - preparing)),
        ("seconds preparing", preparing),
    ]
    pairs += spaced(result.options).items()
    rows = [{"counter": name, "value": str(value)} for name, value in spaced(result.stats).items()]
    versions = items(f"{name} {version}" for name, version in result.versions.items())
    digest = paragraph(f"Problem {result.problem_sha256 or 'unknown'}.", "note")
    return [
        facts(pairs),
        folded("Counters", table(rows, "Counters of the method")),
        folded("Versions", versions + digest),
    ]
