"""A problem made from what a user has, which says of every field whether it is known or assumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from specopt.instances.family import Family
from specopt.models.errors import InvalidInput
from specopt.models.problem import Problem

MOST = 4
"""Entries of a column that are shown."""


@dataclass(frozen=True)
class Value:
    """A value that a plan rests on.

    Parameters
    ----------
    name
        The field.
    text
        What it is, in short.
    source
        Where it comes from.
    assumed
        Whether nothing that the user gave says it.
    """

    name: str
    text: str
    source: str
    assumed: bool = False


Given = Mapping[str, tuple[Any, str]]
"""Of a problem: JSON-like values of fields that are known, and where each comes from."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A problem, and where it comes from.

    Parameters
    ----------
    problem
        The problem.
    family
        What gives the fields that nobody gave.
    sources
        By field that is known: where from.
    measure
        By field: how to find it out, what matters most first.
    unused
        What was given and plays no part, with the reason.
    """

    problem: Problem
    family: Family
    sources: Mapping[str, str]
    measure: Mapping[str, str]
    unused: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls, base: Problem, family: Family, given: Given, measure: Mapping[str, str], unused: Sequence[str] = ()
    ) -> Self:
        """Return a family's problem with all that is known put in.

        Raises
        ------
        InvalidInput
            If the problem refuses a value; the message says where it comes from.
        """
        data = base.to_dict() | {name: value for name, (value, _) in given.items()}
        try:
            problem = type(base).from_dict({name: value for name, value in data.items() if value is not None})
        except InvalidInput as error:
            name = str(error).partition(":")[0].partition("[")[0].partition(".")[0]
            source = given[name][1] if name in given else family.name
            raise InvalidInput(f"{error} (from {source})") from None
        sources = {name: source for name, (_, source) in given.items()}
        return cls(problem=problem, family=family, sources=sources, measure=measure, unused=tuple(unused)).labelled()

    def labelled(self) -> Self:
        """Return the same with a problem whose notes say what it rests on, and whose name is no family's any more."""
        assumed = ", ".join(value.name for value in self.values if value.assumed) or "nothing"
        notes = f"Assumed, from {self.family.name}: {assumed}."
        return dataclasses.replace(self, problem=dataclasses.replace(self.problem, name=None, notes=notes))

    @property
    def values(self) -> list[Value]:
        """Every field of the problem that is not at the format's own default."""
        data = self.problem.to_dict()
        fields = [name for name in data if name not in ("format", "kind", "name", "notes")]
        return [
            Value(name, _short(data[name]), self.sources.get(name, self.family.name), name not in self.sources)
            for name in fields
        ]

    @property
    def next(self) -> list[str]:
        """What to find out, of what is assumed."""
        assumed = {value.name for value in self.values if value.assumed}
        return [f"{name}: {how}" for name, how in self.measure.items() if name in assumed]


def _short(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        if len(value) <= MOST:
            return ", ".join(f"{one:.4g}" for one in value)
        low, high = min(value), max(value)
        return f"{len(value)} x {low:.4g}" if low == high else f"{len(value)} values, {low:.4g} to {high:.4g}"
    if isinstance(value, Mapping):
        if "layers" in value:
            return f"{value.get('name', 'model')}: {value['layers']} layers of {value['hidden']}"
        return "; ".join(f"{name} {_short(one)}" for name, one in value.items())
    if isinstance(value, list):
        return f"{len(value)}: " + "; ".join(map(_short, value[:2])) + ("; ..." if len(value) > 2 else "")
    return f"{value:.6g}" if isinstance(value, float) else str(value)
