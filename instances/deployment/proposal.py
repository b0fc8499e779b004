"""Problems that are built from a user's data.

Every field of such a problem is marked as known or assumed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from specopt.instances.family import Family
from specopt.models.errors import InvalidInput
from specopt.models.problem import Problem

MOST = 4
"""Maximum number of entries that are displayed for a column."""


@dataclass(frozen=True)
class Value:
    """A value on which a plan is based, with its source.

    Parameters
    ----------
    name
        Name of the value, such as the name of a problem's field.
    text
        Short description of the value.
    source
        Source of the value.
    assumed
        Whether the value is assumed, because it does not follow from the user's data.
    """

    name: str
    text: str
    source: str
    assumed: bool = False


Given = dict[str, tuple[Any, str]]
"""Mapping from the name of each known field to a pair (JSON-like value, source of the value)."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A problem and the sources of its fields.

    A field of the objects in a list is named `list.field`, for example `verifiers.passes`.

    Parameters
    ----------
    problem
        Problem with all fields filled in.
    family
        Family (problem generator) that supplies the fields that are not given.
    sources
        Source of each known field.
    measure
        Instructions for measuring each field, most important field first.
    unused
        User data that the problem does not use, with the reason for each item.
    guesses
        Reasons for the assumed values that the family does not supply.
    """

    problem: Problem
    family: Family
    sources: Mapping[str, str]
    measure: Mapping[str, str]
    unused: tuple[str, ...] = ()
    guesses: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        base: Problem,
        family: Family,
        given: Given,
        measure: Mapping[str, str],
        unused: Sequence[str] = (),
        assumed: Given | None = None,
    ) -> Self:
        """Return a proposal that fills the known and the assumed values into a family's problem.

        Raises
        ------
        InvalidInput
            If the problem rejects a value. The message states the source of the value.
        """
        data = base.to_dict()
        assumed = assumed or {}
        for path, (value, _) in (assumed | given).items():
            name, _, inner = path.partition(".")
            for place in data[name] if inner else [data]:
                place[inner or name] = value
                if value is None:
                    del place[inner or name]
        sources, guesses = (
            {name: source for name, (_, source) in some.items()} for some in (given, assumed)
        )
        try:
            problem = type(base).from_dict(data)
        except InvalidInput as error:
            steps = re.sub(r"\[\d+\]", "", str(error).partition(":")[0]).split(".")
            source = sources.get(".".join(steps[:2]), sources.get(steps[0], family.name))
            raise InvalidInput(f"{error} (from {source})") from None
        return cls(
            problem=problem,
            family=family,
            sources=sources,
            measure=measure,
            unused=tuple(unused),
            guesses=guesses,
        ).labelled()

    def labelled(self) -> Self:
        """Return a copy whose problem lists the assumed fields in its notes and has no name."""
        assumed = ", ".join(value.name for value in self.values if value.assumed) or "nothing"
        notes = f"Assumed, from {self.family.name}: {assumed}."
        return dataclasses.replace(
            self, problem=dataclasses.replace(self.problem, name=None, notes=notes)
        )

    @property
    def values(self) -> list[Value]:
        """Values of the problem's fields, except defaults that have no stated source."""
        fields: dict[str, Any] = {}
        for name, value in self.problem.to_dict().items():
            parts = (
                value if isinstance(value, list) and value and isinstance(value[0], Mapping) else []
            )
            for part in parts:
                fields |= {f"{name}.{key}": one for key, one in part.items()}
            if not parts and name not in ("format", "kind", "name", "notes"):
                fields[name] = value
        found = []
        for name in {**fields, **{name: None for name in self.guesses if name not in self.sources}}:
            source = self.sources.get(name, self.sources.get(name.partition(".")[0]))
            if name not in fields:
                source = None
            where = source or self.guesses.get(name, self.family.name)
            found.append(Value(name, _short(fields.get(name, "default")), where, source is None))
        return found

    @property
    def next(self) -> list[str]:
        """Instructions for measuring each assumed field, most important field first."""
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
