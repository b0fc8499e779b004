"""A reproduction as a page: what became of each statement of a paper, and the pictures that were drawn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from specopt.models.errors import InvalidInput
from specopt.report.markup import picture, section, table
from specopt.report.page import Page
from specopt.reproductions.views import HEAD, cells


class Reproduction(msgspec.Struct, forbid_unknown_fields=True):
    """What `specopt reproduce` writes: entries of the ledger, and the names of pictures beside them."""

    title: str
    statements: list[dict[str, Any]]
    pictures: list[str]


def read_reproduction(data: object, path: Path) -> Reproduction:
    """Return a reproduction from JSON-like data.

    Raises
    ------
    InvalidInput
        If it is none.
    """
    try:
        found = msgspec.convert(data, Reproduction)
        for one in found.statements:
            cells(one)
            if not isinstance(one["status"], str) or not isinstance(one.get("holds", True), bool):
                raise TypeError("expected text as status, true or false as holds")
    except (msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path}: expected what reproduce writes ({str(error).replace('`', '')})") from None
    return found


def reproduction_page(found: Reproduction, folder: Path, sources: tuple[str, ...]) -> Page:
    """Return the page of a reproduction; pictures are those that lie in its folder."""
    statuses = Counter(one["status"] for one in found.statements)
    held = [one["holds"] for one in found.statements if "holds" in one]
    lead = [
        f"{len(found.statements)} statements: {', '.join(f'{count} {status}' for status, count in statuses.items())}.",
        f"{sum(held)} of {len(held)} hold with the default assumptions.",
    ]
    rows = [dict(zip(HEAD, cells(one), strict=True)) for one in found.statements]
    body = [section("Statements", table(rows, "Statements"))]
    for name in found.pictures:
        path = folder / Path(name).name
        if path.is_file():
            body.append(section(path.stem, picture(path.read_bytes(), path.stem)))
    return Page(title=found.title, lead=lead, body=body, sources=sources)
