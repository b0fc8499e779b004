"""A figure or table of a paper, computed again: its data, its claims, its picture, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = str | int | float | None
"""An entry of the data of a figure or table."""

Rows = Sequence[Mapping[str, Value]]
"""The data: one mapping per row, all with the same keys."""

LEVEL = 0.1
"""A printed number counts as reproduced within 10 % of it."""


class Verdict(StrEnum):
    """How much of a figure or table comes out."""

    REPRODUCED = "reproduced"
    IN_SHAPE = "reproduced in shape"
    NOT = "not reproduced"


def within(ours: float, printed: float, level: float = LEVEL) -> bool:
    """Whether a number is the printed one, up to a share of it."""
    return abs(ours - printed) <= level * abs(printed)


def table(columns: str, rows: Iterable[Iterable[Value]]) -> list[dict[str, Value]]:
    """Return rows by column, whose names are apart by spaces."""
    return [dict(zip(columns.split(), row, strict=True)) for row in rows]


@dataclass(frozen=True)
class Claim:
    """Something that the paper says of a figure or table.

    Parameters
    ----------
    text
        The claim, in a few words.
    holds
        Whether what was computed agrees.
    measured
        What was computed.
    printed
        What the paper prints; empty for a matter of order or trend.
    essential
        Whether the shape depends on it: an order, a trend. Else it is a level.
    """

    text: str
    holds: bool
    measured: str = ""
    printed: str = ""
    essential: bool = True

    @classmethod
    def level(cls, text: str, printed: float, measured: float, unit: str = "") -> Claim:
        """Return the claim that a number is about the printed one; no shape depends on it."""
        space = f" {unit}" if unit else ""
        holds = within(measured, printed)
        return cls(text, holds, f"{measured:.4g}{space}", f"{printed:.4g}{space}", essential=False)

    def __str__(self) -> str:
        numbers = "; ".join(
            f"{label} {value}" for label, value in (("printed", self.printed), ("here", self.measured)) if value
        )
        return f"{self.text}{f' ({numbers})' if numbers else ''}: {'yes' if self.holds else 'no'}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Artefact:
    """One figure or table, computed again.

    Parameters
    ----------
    name
        As on the command line, such as ``figure-7a``.
    title
        What it shows.
    rows
        Its data, one mapping per row, all with the same keys.
    claims
        What the paper says of it, and whether that holds here.
    remark
        Why something does not come out, what had to be assumed, what would be needed.
    draw
        Makes its picture; None for a table.
    """

    name: str
    title: str
    rows: Rows
    claims: Sequence[Claim]
    remark: str = ""
    draw: Callable[[], Figure] | None = None

    @property
    def verdict(self) -> Verdict:
        """All claims hold; at least those on orders and trends; or not even those."""
        if all(claim.holds for claim in self.claims):
            return Verdict.REPRODUCED
        shape = [claim.holds for claim in self.claims if claim.essential]
        return Verdict.IN_SHAPE if shape and all(shape) else Verdict.NOT

    @property
    def paragraph(self) -> str:
        """The verdict, the claims one by one, and the remark."""
        said = (str(claim) for claim in self.claims)
        sentences = [f"{self.verdict.capitalize()}.", *(f"{text[:1].upper()}{text[1:]}." for text in said)]
        return " ".join((*sentences, self.remark)).strip()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the picture as JSON-like data."""
        return {
            "name": self.name,
            "title": self.title,
            "verdict": self.verdict.value,
            "claims": [
                {"text": claim.text, "printed": claim.printed, "measured": claim.measured, "holds": claim.holds}
                for claim in self.claims
            ],
            "remark": self.remark,
            "rows": [dict(row) for row in self.rows],
        }
