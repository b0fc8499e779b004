"""Tables 4-7 and 12 of paper 2 against the numbers printed beside them (`paper_2_tables`): claims and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from specopt.reproductions.artefact import LEVEL, Artefact, Claim
from specopt.reproductions.paper_2_tables import Row, tables

TITLES = {
    "table-4": "Predictors of rejection, against the counts of Table 10",
    "table-5": "Gain in acceptance, against the rates beside it",
    "table-6": "Gain in goodput, against the figures beside it",
    "table-7": "Quality of the verification-time estimator, against the text",
    "table-12": "Coefficients of the estimator, against Sec. 4.4 and the hardware",
}


def recomputed(name: str) -> Artefact:
    """Return a table of `TITLES`: what its printed numbers make of each other."""
    number = name.removeprefix("table-")
    chosen = (f"Table {number}", "Table 10") if number == "4" else (f"Table {number}",)
    rows = [row for row in tables() if row.table in chosen]
    return Artefact(
        name=name,
        title=TITLES[name],
        rows=[
            {
                "table": row.table,
                "quantity": row.quantity,
                "unit": row.unit,
                "published": row.published,
                "recomputed": row.recomputed,
                "agrees": "yes" if row.agrees else "no",
                "what_follows": row.verdict,
            }
            for row in rows
        ],
        claims=tuple(_TABLE_CLAIMS.get(number, _all_follow)(rows)),
        remark="Recomputed from the printed numbers alone; the measurements behind them are not public."
        + _REMARKS.get(number, ""),
    )


def _all_follow(rows: Sequence[Row]) -> Iterator[Claim]:
    """Yield that most printed numbers follow from the others, and each one that does not."""
    of_table = [row for row in rows if "if its rate is a fraction" not in row.quantity]  # a reading, nothing printed
    wrong = [row for row in of_table if not row.agrees]
    yield Claim(
        text="at least half of the printed numbers follow from those beside them",
        measured=f"{len(of_table) - len(wrong)} of {len(of_table)}", holds=2 * len(wrong) <= len(of_table),
    )  # fmt: skip
    for row in wrong:
        unit = f" {row.unit}" if row.unit else ""
        yield Claim(
            text=f"{row.quantity}: {row.verdict}", printed=f"{row.published:g}{unit}",
            measured=f"{row.recomputed:g}{unit}", holds=False, essential=False,
        )  # fmt: skip


def _two_sets(rows: Sequence[Row]) -> Iterator[Claim]:
    """Yield that Sec. 4.4 and Table 12 agree, and that the hardware can do what they say."""
    ratios = [row.recomputed / row.published for row in rows if row.quantity.endswith("by Sec. 4.4")]
    yield Claim(
        text="Sec. 4.4 and Table 12 give the same time for a batch",
        measured=f"{min(ratios):.2f} to {max(ratios):.2f} times",
        holds=max(ratios) <= 1.0 + LEVEL and min(ratios) >= 1.0 - LEVEL,
    )
    impossible = [row for row in rows if "; impossible" in row.verdict]
    yield Claim(
        text="no time is below what one A100 needs at least",
        measured=f"{len(impossible)} of {len(ratios)} batches are", holds=not impossible,
    )  # fmt: skip
    for row in rows:
        if row.quantity.endswith("the least that one A100 reaches"):
            yield Claim(
                text=f"{row.quantity.removesuffix(' and the least that one A100 reaches')} is within an A100's reach",
                printed=f"{row.published:.3g} s", measured=f"at least {row.recomputed:.3g} s", holds=row.agrees,
                essential=False,
            )  # fmt: skip


_TABLE_CLAIMS: Mapping[str, Callable[[Sequence[Row]], Iterator[Claim]]] = {"12": _two_sets}
_REMARKS = {
    "5": " The acceptance rates can only be fractions of the drafted tokens, not rates per token.",
    "6": " Goodput more than doubles from 4 to 8 devices that share one verifier.",
    "12": " Coefficients are therefore inputs here, and a fit flags those that the hardware cannot reach.",
}
