"""A problem made from a user's data; every field is marked as known or assumed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
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
    """A problem, and where it comes from; fields of the objects in a list are named `list.field`.

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
    guesses
        By field that is assumed, but not from the family, or left at the format's default: on what
        grounds.
    """

    problem: Problem
    family: Family
    sources: Mapping[str, str]
    measure: Mapping[str, str]
    unused: tuple[str, ...] = field(default=())
    guesses: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        base: Problem,
        family: Family,
        given: Given,
        measure: Mapping[str, str],
        unused: Sequence[str] = (),
        assumed: Given = MappingProxyType({}),
    ) -> Self:
        """Return a family's problem with all that is known put in, and what is assumed instead of
        the family's.

        Raises
        ------
        InvalidInput
            If the problem refuses a value; the message says where it comes from.
        """
        data = base.to_dict()
        for path, (value, _) in {**assumed, **given}.items():
            name, _, inner = path.partition(".")
            for place, key in [(one, inner) for one in data[name]] if inner else [(data, name)]:
                place[key] = value
                if value is None:
                    del place[key]
        try:
            problem = type(base).from_dict(data)
        except InvalidInput as error:
            steps = re.sub(r"\[\d+\]", "", str(error).partition(":")[0]).split(".")
            named = (given.get(".".join(steps[:count])) for count in (2, 1))
            source = next((one[1] for one in named if one is not None), family.name)
            raise InvalidInput(f"{error} (from {source})") from None
        sources, guesses = (
            {name: source for name, (_, source) in some.items()} for some in (given, assumed)
        )
        return cls(
            problem=problem,
            family=family,
            sources=sources,
            measure=measure,
            unused=tuple(unused),
            guesses=guesses,
        ).labelled()

    def labelled(self) -> Self:
        """Return the same with a problem whose notes say what it rests on, and whose name is no
        family's any more.
        """
        assumed = ", ".join(value.name for value in self.values if value.assumed) or "nothing"
        notes = f"Assumed, from {self.family.name}: {assumed}."
        return dataclasses.replace(
            self, problem=dataclasses.replace(self.problem, name=None, notes=notes)
        )

    @property
    def values(self) -> list[Value]:
        """Every field of the problem that is not at the format's own default, or that there are
        grounds for.
        """
        fields: dict[str, Any] = {}
        for name, value in self.problem.to_dict().items():
            parts = (
                value if isinstance(value, list) and value and isinstance(value[0], Mapping) else []
            )
            for part in parts:
                fields |= {f"{name}.{key}": one for key, one in part.items()}
            if not parts and name not in ("format", "kind", "name", "notes"):
                fields[name] = value
        listed = {
            name: self.sources.get(name, self.sources.get(name.partition(".")[0]))
            for name in fields
        }
        found = []
        for name in {**fields, **{name: None for name in self.guesses if name not in self.sources}}:
            source = listed.get(name)
            where = source or self.guesses.get(name, self.family.name)
            found.append(Value(name, _short(fields.get(name, "default")), where, source is None))
        return found

    @property
    def next(self) -> list[str]:
        """Assumed fields, each with the way to measure it."""
        assumed = {value.name for value in self.values if value.assumed}
        return [f"{name}: {how}" for name, how in self.measure.items() if name in assumed]


def _short(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        if len(value) <= MOST:
            return ", ".join(f"{one:.4g}" for one in value)
        low, high = min(value), max(value)
        return (
            f"{len(value)} x {low:.4g}"
            if low == high
            else f"{len(value)} values, {low:.4g} to {high:.4g}"
        )
    if isinstance(value, Mapping):
        if "layers" in value:
            return f"{value.get('name', 'model')}: {value['layers']} layers of {value['hidden']}"
        return "; ".join(f"{name} {_short(one)}" for name, one in value.items())
    if isinstance(value, list):
        return (
            f"{len(value)}: "
            + "; ".join(map(_short, value[:2]))
            + ("; ..." if len(value) > 2 else "")
        )
    return f"{value:.6g}" if isinstance(value, float) else str(value)
