"""A reproduction as a page: what became of each figure and table of a paper, claim by claim, with picture and data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from specopt.models.errors import InvalidInput
from specopt.report.markup import folded, paragraph, picture, section, table
from specopt.report.page import Page
from specopt.reproductions.artefact import Verdict


class _Claim(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    printed: str
    measured: str
    holds: bool


class _Artefact(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    title: str
    verdict: Verdict
    claims: list[_Claim]
    remark: str
    rows: list[dict[str, str | int | float | None]]


class Reproduction(msgspec.Struct, forbid_unknown_fields=True):
    """What `specopt reproduce` writes beside its pictures."""

    title: str
    artefacts: list[_Artefact]


def read_reproduction(data: object, path: Path) -> Reproduction:
    """Return a reproduction from JSON-like data.

    Raises
    ------
    InvalidInput
        If it is none.
    """
    try:
        return msgspec.convert(data, Reproduction)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path}: expected what reproduce writes ({str(error).replace('`', '')})") from None


def reproduction_page(found: Reproduction, folder: Path, sources: tuple[str, ...]) -> Page:
    """Return the page of a reproduction; pictures are those that lie in its folder."""
    verdicts = Counter(one.verdict for one in found.artefacts)
    claims = [claim.holds for one in found.artefacts for claim in one.claims]
    counts = ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict])
    lead = [
        f"{len(found.artefacts)} figures and tables: {counts}.",
        f"{sum(claims)} of {len(claims)} claims hold.",
    ]
    overview = [
        {
            "figure": one.name,
            "what it shows": one.title,
            "verdict": one.verdict.value,
            "claims that hold": sum(claim.holds for claim in one.claims),
            "claims": len(one.claims),
        }
        for one in found.artefacts
    ]
    body = [section("Overview", table(overview, "Figures and tables"))]
    body += [_artefact(one, folder) for one in found.artefacts]
    return Page(title=found.title, lead=lead, body=body, sources=sources)


def _artefact(one: _Artefact, folder: Path) -> str:
    told = [
        {"claim": claim.text, "printed": claim.printed, "here": claim.measured, "holds": claim.holds}
        for claim in one.claims
    ]
    parts = [paragraph(f"{one.verdict.value.capitalize()}. {one.remark}".strip()), table(told, "Claims")]
    path = folder / f"{Path(one.name).name}.png"
    if path.is_file():
        parts.append(picture(path.read_bytes(), f"{one.name}: {one.title}"))
    parts.append(folded(f"Data ({len(one.rows)} rows)", table(_rows(one), one.title)))
    return section(f"{one.name}: {one.title}", *parts)


def _rows(one: _Artefact) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(name for row in one.rows for name in row))
    return [{name: row.get(name) for name in names} for row in one.rows]
