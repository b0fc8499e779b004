"""Display of placement plans, as text and as charts."""

from __future__ import annotations

from specopt.console.terminal import MAX_ROWS, Console, line, print_first, table
from specopt.kinds.chart import TOOLTIP, Chart, category, layer, points, quantity
from specopt.kinds.view import View
from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import PlacementProblem


def print_plan(problem: PlacementProblem, plan: PlacementPlan, out: Console) -> None:
    """Print where each class of clients drafts, the clients' rates, and the load on each unit."""
    terms = problem.evaluate(plan).terms
    view = table("class", "place", "verifier", "drafter", "tokens", "clients", "tokens/s")
    rows = [(name, row) for name, served in terms["classes"].items() for row in served]
    for name, row in rows[:MAX_ROWS]:
        place = f"{row['place']}, ahead" if row["overlap"] else row["place"]
        view.add_row(
            name,
            place,
            row["verifier"],
            row["drafter"] or "",
            row["draft_tokens"] or "",
            f"{row['clients']:,}",
            f"{row['tokens_per_second']:.4g}",
        )
    print_first(out, view, len(rows), "rows")
    for name, used in terms["verifiers"].items():
        of = f"{used['units']} of {problem.verifier[name].units} units"
        busy = (
            f", busy {used['busy_share']:.0%}, {used['batch']:.3g} clients a pass"
            if used["units"]
            else ""
        )
        line(out, name, of + busy)
    for draft in plan.draft_groups:
        of = (
            f"{draft.units} of {problem.pool[draft.pool].units} units, {draft.drafter},"
            f" {draft.per_unit} clients each"
        )
        line(out, draft.pool, of)


def charts(problem: PlacementProblem, plan: PlacementPlan) -> tuple[Chart, ...]:
    """Return one chart of the clients and one chart of the verifiers' units.

    In the first chart, a point represents the clients of one class that use the same source of
    drafts in one group of units.
    """
    terms = problem.evaluate(plan).terms
    rows = [
        {
            "class": name,
            "place": row["place"],
            "verifier": row["verifier"],
            "drafter": row["drafter"] or "none",
            "draft tokens": row["draft_tokens"],
            "clients": row["clients"],
            "tokens per second": row["tokens_per_second"],
        }
        for name, served in terms["classes"].items()
        for row in served
    ]
    units = [
        {
            "verifier": name,
            "units used": used["units"],
            "units available": problem.verifier[name].units,
            "clients per pass": used["batch"],
            "busy (%)": 100.0 * (used["busy_share"] or 0.0),
        }
        for name, used in terms["verifiers"].items()
    ]
    return (
        points(
            "Sources of drafts",
            f"{sum(row['clients'] for row in rows):,} clients of {len(problem.classes)} classes.",
            rows,
            x=quantity("clients"),
            y=quantity("tokens per second"),
            color=category("place"),
        ),
        Chart(
            title="Load of the units",
            note="Share of time that the units of a verifier are busy, mean over the units used.",
            rows=units,
            spec={
                "height": 36 * len(units),
                **layer(
                    {"type": "bar", "tooltip": TOOLTIP},
                    x=quantity("busy (%)", scale={"domain": [0, 100]}),
                    y=category("verifier", title=None),
                ),
            },
        ),
    )


VIEW = View(print_plan=print_plan, charts=charts)
