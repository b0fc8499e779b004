"""What the papers print, as data: one TOML file per paper, one line per statement."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A number, or some numbers, that a paper prints.

    Parameters
    ----------
    id
        Unique within the paper; empty for what is printed between the lines only.
    place
        Where it stands, such as ``Figure 6(a)``.
    statement
        What it is.
    printed
        As printed: a number, or a list of numbers where they belong together.
    unit
        Of the number.
    note
        Why it does not come out, or what would be needed; empty if there is nothing to say.
    given
        What it is computed again from: names of settings, and numbers printed beside it.
    """

    id: str = ""
    place: str
    statement: str
    printed: Any
    unit: str = ""
    note: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)


@cache
def statements(paper: str) -> Mapping[str, Statement]:
    """Return what a paper prints, by id, in the order of the file; ``paper-4`` for example."""
    lines = tomllib.loads((resources.files(__package__) / "data" / f"{paper}.toml").read_text())["statements"]
    found = {}
    for line in lines:
        said = {key.name: line.pop(key.name) for key in fields(Statement) if key.name in line}
        found[said["id"]] = Statement(**said, given=line)
    return found


def at(paper: str, *places: str) -> Iterator[Statement]:
    """Yield what stands in some places; ``Figure 6`` has the places ``Figure 6(a)`` and ``Figure 6(b)``."""
    for statement in statements(paper).values():
        if statement.place.partition("(")[0] in places or statement.place in places:
            yield statement


@dataclass(frozen=True)
class Finding:
    """A printed number beside ours.

    Parameters
    ----------
    said
        What is printed.
    ours
        The same, computed here.
    verdict
        What became of it: "agrees" or "differs" where printed numbers determine it; simulated, "calibrated",
        "reproduced", "close", "not reproduced" or "impossible".
    note
        Why, or what would be needed; empty if there is nothing to say.
    """

    said: Statement
    ours: float
    verdict: str
    note: str = ""

    @property
    def ratio(self) -> float:
        """Ours over the printed number; NaN if that is 0."""
        return self.ours / self.said.printed if self.said.printed else float("nan")

    @property
    def agrees(self) -> bool:
        """Whether the printed number follows from others."""
        return self.verdict == "agrees"
