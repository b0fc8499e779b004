"""A reproduction as a page: what became of each statement of a paper, and the pictures that were drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from specopt.models.errors import InvalidInput
from specopt.report.markup import picture, section, table
from specopt.report.page import Page
from specopt.reproductions.ledger import counts
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
        _lead(found)
        for one in found.statements:
            cells(one)
            if not isinstance(one.get("holds", True), bool):
                raise TypeError("expected true or false as holds")
    except (msgspec.ValidationError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path}: expected what reproduce writes ({str(error).replace('`', '')})") from None
    return found


def _lead(found: Reproduction) -> list[str]:
    """Return how many statements of the papers, and of ours on the real pair, came out how."""
    both = (counts(found.statements, real=real).items() for real in (False, True))
    return [f"{text}." for one in both if (text := ", ".join(f"{count} {word}" for word, count in one if count))]


def reproduction_page(found: Reproduction, folder: Path, sources: tuple[str, ...]) -> Page:
    """Return the page of a reproduction; pictures are those that lie in its folder."""
    lead = _lead(found)
    rows = [dict(zip(HEAD, cells(one), strict=True)) for one in found.statements]
    body = [section("Statements", table(rows, "Statements"))]
    for name in found.pictures:
        path = folder / Path(name).name
        if path.is_file():
            body.append(section(path.stem, picture(path.read_bytes(), path.stem)))
    return Page(title=found.title, lead=lead, body=body, sources=sources)
