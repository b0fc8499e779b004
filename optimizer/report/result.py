"""Pages of results: certificate, plan, and, if the problem is known, the judge's report and
charts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from specopt.api.claims import certificate, every_plan_has, without_refuted_claims
from specopt.kinds import kind_of
from specopt.kinds.view import view_of
from specopt.models.errors import InvalidInput
from specopt.models.judge import Report, verify
from specopt.models.problem import Problem
from specopt.models.result import Result, Status
from specopt.report.markup import MAX_ROWS, facts, folded, items, paragraph, section, table, text
from specopt.report.page import Page, figure

NOT_JUDGED = (
    "The claims of the file were not checked: --problem FILE judges the plan again and draws it."
)


def result_page(result: Result, problem: Problem | None, sources: tuple[str, ...]) -> Page:
    """Return the page of a result.

    Parameters
    ----------
    result
        The result.
    problem
        Problem of the result; None: its plan and objective are shown as claimed.
    sources
        Files of the result and the problem.

    Raises
    ------
    InvalidInput
        If the result belongs to another problem.
    """
    kind = kind_of(result.kind)
    judged = None if problem is None or result.plan is None else verify(problem, result)
    result, refuted = without_refuted_claims(result, problem, judged)
    name = None if problem is None else problem.name
    body = []
    if problem is not None and judged is not None and judged.feasible and result.plan is not None:
        charts = view_of(problem).charts
        if charts is not None:
            body.append(section("The plan", *map(figure, charts(problem, result.plan))))
    if result.plan is not None:
        body.append(section("The plan row by row", plan_rows(kind.rows, result)))
    body.append(section("How it was found", *_run(result)))
    violations = [] if judged is None else judged.violations
    lead = (
        [f"The plan violates its problem: {'; '.join(violations[:5])}."]
        if violations
        else [*refuted, *certificate(result, problem)]
    )
    if judged is None:
        lead.append(NOT_JUDGED if problem is None else "There is no plan to judge.")
    elif not violations:
        lead.append("Judged again from the problem's data alone: the plan violates nothing.")
        if not judged.matches:
            lead.append(
                "The objective that the file claims is not that of its plan; this page shows the"
                " judge's objective."
            )
    return Page(
        title=f"{result.kind}{f': {name}' if name else ''}, planned by {result.by}",
        lead=lead,
        body=[figures(result, problem, judged), *body],
        sources=sources,
        good=(
            False
            if violations or refuted or result.plan is None
            else result.status is Status.OPTIMAL or None
        ),
    )


def figures(result: Result, problem: Problem | None = None, judged: Report | None = None) -> str:
    """Return the status, objective, bound and terms of a result as HTML."""
    kind = kind_of(result.kind).problem
    pairs: list[tuple[str, object]] = [
        ("status", result.status.value if judged is None or judged.feasible else "violated")
    ]
    if result.objective is not None:
        pairs.append(((problem or kind).objective_label, result.objective))
    if result.bound is not None:
        pairs.append((every_plan_has(kind, problem.scale if problem else ()), result.bound))
    pairs += [
        (name.replace("_", " "), value)
        for name, value in result.terms.items()
        if isinstance(value, float)
    ]
    return facts(pairs)


def plan_rows(rows: Any, result: Result) -> str:
    """Return the plan of a result as a table in HTML."""
    plan = result.plan
    try:
        found = [
            {name.replace("_", " "): value for name, value in row.items()}
            for row in islice(rows(plan), 20 * MAX_ROWS)
        ]
    except InvalidInput as error:
        return paragraph(str(error))
    assert plan is not None, "checked by the caller"
    return table(found, "The plan") + folded("The plan as JSON", _source(plan.to_dict()))


def _source(data: Mapping[str, Any]) -> str:

    found = json.dumps(data)
    return f"<pre>{text(found if len(found) <= 4000 else found[:4000] + ' ...')}</pre>"


def _run(result: Result) -> list[str]:
    preparing = float(result.stats.get("preparing_seconds", 0.0))
    pairs: list[tuple[str, object]] = [
        ("method", result.by),
        ("ended", result.termination.value.replace("_", " ")),
        ("seconds solving", max(0.0, result.seconds - preparing)),
        ("seconds preparing", preparing),
    ]
    pairs += [(name.replace("_", " "), value) for name, value in result.options.items()]
    rows = [
        {"counter": name.replace("_", " "), "value": str(value)}
        for name, value in result.stats.items()
    ]
    versions = items(f"{name} {version}" for name, version in result.versions.items())
    digest = paragraph(f"Problem {result.problem_sha256 or 'unknown'}.", "note")
    return [
        facts(pairs),
        folded("Counters", table(rows, "Counters of the method")),
        folded("Versions", versions + digest),
    ]
