"""The table of field names, `fields.toml`, and the evaluation of the table's formulas."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import prod
from types import CodeType
from typing import Any

from specopt.models.arguments import boolean, integer, one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

MAX_LAYERS = 10_000
"""Maximum number of layers in a config, limited because every layer is counted separately."""


class Section:
    """An object in a config file.

    A field name may be a path with dots, or a list of alternatives separated by ``|``. The first
    alternative that is present is used.

    Parameters
    ----------
    data
        Content of the object.
    name
        Path of the object in the file.
    """

    def __init__(self, data: object, name: str = "") -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput(
                f"{name or 'the top level'}: expected an object, got {describe(data)}"
            )
        self.data: Mapping[str, Any] = data
        self.where = name and f"{name}."

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or the default if the field is absent or null."""
        for path in name.split("|"):
            value: Any = self.data
            for key in path.split("."):
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        return default

    def given(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        return self.get(name) is not None

    def path(self, name: str) -> str:
        """Return the path of a field, used in error messages."""
        return self.where + name.partition("|")[0]

    def size(self, name: str, default: int | None = None, low: int = 1) -> int:
        """Return an integer field >= `low`. Without a default, the field is required."""
        value = self.get(name, default)
        if value is None:
            raise InvalidInput(f"{self.path(name)}: required field is missing")
        return integer(
            self.path(name), value, low, MAX_LAYERS if name.endswith("_layers") else MAX_TOKENS
        )

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a Boolean field."""
        return boolean(self.path(name), self.get(name, default))

    def choice(self, name: str, choices: tuple[Any, ...], default: Any = None) -> Any:
        """Return a field whose value must be one of the given choices."""
        return one_of(self.path(name), self.get(name, default), choices)

    def listed(
        self, name: str, default: tuple[int, ...] | None = None, size: int | None = None
    ) -> list[int]:
        """Return a list of integers >= 0, which may also be given as a comma-separated string."""
        value = self.get(name, default)
        where = self.path(name)
        items = sequence(where, value.split(",") if isinstance(value, str) else value, size)
        return [
            integer(where, int(item) if str(item).strip().isdecimal() else item, 0, MAX_TOKENS)
            for item in items
        ]

    def count(self, name: str, default: int | None = None, low: int = 1) -> int:
        """Return the number of entries in a list field, which must be at least `low`."""
        if default is not None and not self.given(name):
            return default
        return integer(f"{self.path(name)}, number of entries", len(self.listed(name)), low)

    def quotient(self, dividend: str, total: int, divisor: str, parts: int) -> int:
        """Return `total` / `parts`, which must be an integer.

        The field names `dividend` and `divisor` are used only in the error message.
        """
        if total % parts:
            raise InvalidInput(
                f"{self.path(divisor)}: expected a divisor of {dividend} = {total}, got {parts}"
            )
        return total // parts

    def null_means(self, name: str, value: int) -> int:
        """Return a required field, or the given value if the field is null."""
        return value if self.data.get(name, value) is None else self.size(name)

    def patterns(self, name: str) -> list[str]:
        """Return a list whose entries are names or regular expressions; the latter begin with
        ``re:``.
        """
        found = sequence(self.path(name), self.get(name) or [])
        for item in found:
            try:
                re.compile(item[3:] if item.startswith("re:") else "")
            except (AttributeError, re.error):
                raise InvalidInput(
                    f"{self.path(name)}: expected names or patterns, got {describe(item)}"
                ) from None
        return found

    def sections(self, name: str) -> dict[str, Section]:
        """Return the objects inside a field as a mapping from keys to sections."""
        inside = Section(self.get(name), self.path(name))
        return {
            str(key): Section(item, f"{inside.where}{key}") for key, item in inside.data.items()
        }


Entry = Mapping[str, Any]
"""Entry in a section of the table; `fields.toml` explains its keys."""

TABLE: dict[str, Any] = tomllib.loads(
    (resources.files(__package__) / "fields.toml").read_text(encoding="utf-8")
)

MERGED = ("attention", "names", "fixed", "formulas")
"""Keys whose tables are merged with those of the entry that ``like`` refers to."""


def _entries(name: str) -> dict[str, Entry]:
    """Return the entries in a section of the table.

    An entry with the key ``like`` inherits the values of the entry named by that key.
    """
    found = dict[str, Entry]()
    for key, entry in TABLE[name].items():
        parent = found.get(entry.pop("like", "base"), {})
        merged = {part: {**parent.get(part, {}), **entry.get(part, {})} for part in MERGED}
        found[key] = {**parent, **entry, **merged}
    return found


ATTENTION = _entries("attention")
"""Forms of attention, with their tensors and the formulas for the values that they cache."""
HEADS = _entries("heads")
"""Draft heads by kind."""
QUANTISATION = _entries("quantisation")
"""Formulas for the storage of a matrix, by quantisation method."""
VISION = _entries("vision")
"""Formulas for image encoders, by the type of the whole model."""
MODEL_TYPES = _entries("types")
"""Supported model types."""
UNLISTED = {form: MODEL_TYPES.pop(form) for form in ("base", "grouped", "latent")}
"""Fields and formulas for model types that are not in the table, by form of attention."""
del QUANTISATION["base"]


@dataclass(frozen=True, kw_only=True)
class Weight:
    """One or more tensors of the same shape.

    Parameters
    ----------
    name
        Name of the first tensor in checkpoints, without ``.weight``.
    shape
        Rows (outputs) and columns (inputs) of a matrix, or the shape of another tensor.
    role
        "linear" or "expert" (may be quantised), "router" (never quantised), "head" (the output
        matrix), "table" (one row is read per token), "tied" (both head and table), or "other"
        (norms, biases, convolutions).
    copies
        Number of tensors, for example one for each expert of a layer.
    active
        Number of tensors that are used for each token.
    """

    name: str
    shape: tuple[int, ...]
    role: str
    copies: int = 1
    active: int = 1

    @property
    def values(self) -> int:
        """Total number of entries in all copies."""
        return self.copies * prod(self.shape)

    @property
    def active_values(self) -> int:
        """Total number of entries in the copies that are used for each token."""
        return self.active * prod(self.shape)

    @property
    def is_matrix(self) -> bool:
        """Whether the tensor is a matrix that is multiplied in every pass through a layer."""
        return len(self.shape) == 2 and self.role in ("linear", "expert", "router")


READERS = ("get", "given", "size", "flag", "listed", "count", "quotient", "null_means", "choice")
"""Methods of a section that formulas may call."""


class Formulas(dict[str, Any]):
    """The values of named formulas for one config, computed on first use.

    Parameters
    ----------
    section
        Object of the config that contains the fields.
    table
        Mapping from names to formulas; values that are not strings are constants.
    """

    def __init__(self, section: Section, table: Entry) -> None:
        super().__init__({name: getattr(section, name) for name in READERS})
        self.section, self.table = section, table

    def __missing__(self, name: str) -> Any:
        self[name] = self.value(self.table[name]) if name in self.table else self.section.size(name)
        return self[name]

    def value(self, formula: Any) -> Any:
        """Return the value of a formula."""
        return (
            eval(_compiled(formula), {"__builtins__": {}}, self)
            if isinstance(formula, str)
            else formula
        )

    def having(self, table: Entry) -> Formulas:
        """Return these formulas combined with a table of formulas that take precedence."""
        return Formulas(self.section, {**self.table, **table})

    def tensors(self, lines: Iterable[str], prefix: str = "", **names: str) -> Iterator[Weight]:
        """Yield the tensors described by `lines` that are not empty and whose conditions hold.

        The prefix is added to the name of each tensor.
        """
        for line in lines:
            name, _, formula = line.format(**names).partition(": ")
            formula, _, condition = formula.partition(" if ")
            if condition and not self.value(condition):
                continue
            name, _, role = name.partition(" ")
            shape = self.value(f"({formula},)")
            copies = 1
            active = 1
            if role == "expert":
                copies = self["experts"]
                field = self.section.where + self.table["experts_per_token"]
                active = integer(field, self["experts_per_token"], 1, copies)
            role = role or ("linear" if len(shape) == 2 else "other")
            if all(shape):
                yield Weight(
                    name=prefix + name, shape=shape, role=role, copies=copies, active=active
                )


@cache
def _compiled(formula: str) -> CodeType:
    return compile(formula, "fields.toml", "eval")
