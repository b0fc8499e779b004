"""Pages for comparisons of methods.

A page shows the methods, their performance profiles, wins by family, all runs, and the origin of
the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specopt.comparison.cell import Record
from specopt.comparison.profiles import profile_charts
from specopt.comparison.summary import (
    SHIFT_SECONDS,
    TEST_SETS,
    MethodSummary,
    summaries,
    tables_of,
    who_wins,
)
from specopt.comparison.table import Comparison
from specopt.report.markup import items, paragraph, section, table
from specopt.report.page import Page, figure


def comparison_page(comparison: Comparison, sources: tuple[str, ...]) -> Page:
    """Return the report page for a comparison of methods."""
    rows = summaries(comparison)
    kinds = list(dict.fromkeys(row.kind for row in rows))
    failed = sum(record.failed for record in comparison)
    lead = [_winner(kind, [row for row in rows if row.kind == kind]) for kind in kinds]
    if failed:
        lead.append(
            f"{failed} of {len(comparison)} runs failed; they are treated as runs without a plan."
        )
    tables = tables_of(comparison).values()
    body = [_kind(comparison, kind, cells) for kind, cells in zip(kinds, tables, strict=True)]
    wins = [
        {"family": family, **{label: 100.0 * share for label, share in shares.items()}}
        for family, shares in who_wins(comparison).items()
    ]
    if len(wins) > 1:
        body.append(
            section(
                "Best plans by family",
                table(wins, "Share of the runs with the best plan (%)"),
            )
        )
    lost = [
        {
            "method": one.label,
            "instance": one.instance,
            "seed": one.seed,
            "status": one.status,
            "why": one.error,
        }
        for one in comparison
        if one.error is not None
    ]
    if lost:
        body.append(
            section(
                "Failed and refuted runs",
                table(lost, "Failed runs, and refuted claims"),
            )
        )
    body.append(section("Run by run", table(_runs(comparison), "Every run")))
    body.append(
        section(
            "Origin of the numbers",
            items(f"{name}: {text}" for name, text in origins(comparison)),
        )
    )
    title = (
        f"{len({row.label for row in rows})} methods on"
        f" {len({r.problem_sha256 for r in comparison})} instances"
    )
    return Page(title=title, lead=lead, body=body, sources=sources)


def _winner(kind: str, rows: Sequence[MethodSummary]) -> str:
    shares = [(row.all_wins, row.all_proven) for row in rows]
    wins, proven = max(shares)
    winners = [row for row, share in zip(rows, shares, strict=True) if share == (wins, proven)]
    mean_gap = winners[0].mean_gap
    gap = "" if mean_gap is None else f"; the mean gap to the best bound is {100 * mean_gap:.3g} %"
    return (
        f"{kind}: the best plan in {100 * wins:.0f} % of the runs, and"
        f" {100 * proven:.0f} % proven optimal or infeasible, by"
        f" {', '.join(row.label for row in winners)}{gap}."
    )


def _kind(comparison: Comparison, kind: str, cells: Sequence[Mapping[str, Any]]) -> str:
    words = (
        "Gap: |objective - bound| / |objective|, to the best bound of any method, here or in the"
        " instance library. Proven: optimal by that bound. Time: shifted geometric mean, shift"
        f" {SHIFT_SECONDS:g} s. {TEST_SETS}"
    )
    charts = profile_charts(comparison, kind)
    return section(
        f"{kind}: methods",
        table(cells, "Methods"),
        paragraph(words, "note"),
        *map(figure, charts),
    )


def _runs(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "method": one.label,
            "instance": one.instance,
            "seed": one.seed,
            "status": one.status,
            "objective": one.objective,
            "bound": one.bound,
            "gap to the best bound (%)": _percent(comparison.gap(one)),
            "time (s)": one.seconds,
        }
        for one in comparison
    ]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def origins(records: Iterable[Record]) -> list[tuple[str, str]]:
    """Return the conditions under which records were made, as pairs of a name and a description.

    The conditions are machines, versions, limits, seeds and digests of source code.
    """
    facts: dict[str, dict[str, None]] = {}
    for record in records:
        limit = "work" if record.time_limit is None else f"{record.time_limit:g} s"
        found = {
            "Machine": record.host,
            "Versions": ", ".join(
                f"{name} {value}" for name, value in sorted(record.versions.items())
            ),
            "Time limit": f"{limit}, gap {record.gap_limit:g}",
            "Seed": str(record.seed),
            f"{record.kind} {record.method}": ", ".join(
                f"{k} {v}" for k, v in sorted(record.sources.items())
            ),
        }
        for name, text in found.items():
            if text:
                facts.setdefault(name, {})[text] = None
    return [(name, "; ".join(texts)) for name, texts in facts.items()]
