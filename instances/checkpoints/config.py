"""Classes that read the fields of a `config.json` and evaluate the formulas in `fields.toml`, which
is a table of the supported model types.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from math import prod
from types import CodeType
from typing import Any

from specopt.models.arguments import boolean, integer, one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe, printable

MAX_LAYERS = 10_000
"""Maximum number of layers in a config. The number is limited because every layer is counted
separately.
"""

BY_HAND = "measure and enter seconds_per_token and kv_bytes_per_token by hand"
"""Advice at the end of every message that rejects a model."""

Entry = Mapping[str, Any]
"""An entry of `TABLE`, for example a model type. Comments in `fields.toml` explain the keys."""

TABLE: dict[str, Any] = tomllib.loads(
    (resources.files(__package__) / "fields.toml").read_text(encoding="utf-8")
)

MERGED = ("attention", "names", "fixed", "formulas")
"""Keys whose values are tables. An entry inherits the items of these tables one by one."""


def _entries(name: str) -> dict[str, Entry]:
    """Return the entries in the section `name` of `TABLE`.

    Each entry inherits from the entry that its key ``like`` names. Without this key, it inherits
    from the entry ``base``, which is not returned.
    """
    found = dict[str, Entry]()
    for key, entry in TABLE[name].items():
        parent = found.get(entry.pop("like", "base"), {})
        merged = {part: {**parent.get(part, {}), **entry.get(part, {})} for part in MERGED}
        found[key] = {**parent, **entry, **merged}
    del found["base"]
    return found


ATTENTION = _entries("attention")
"""Forms of attention, with their tensors and the formulas for the values that they cache."""
HEADS = _entries("heads")
"""Tensors of each kind of draft head."""
QUANTISATION = _entries("quantisation")
"""Formulas for the size of a stored matrix, for each quantisation method."""
VISION = _entries("vision")
"""Formulas for the number of parameters of image encoders, for each type of multimodal model."""
MODEL_TYPES = _entries("types")
"""Supported model types. The entries "grouped" and "latent", whose lists of classes are empty,
apply to all other types.
"""


class Section:
    """An object in a config file.

    A field name may be a path with dots, or a list of alternatives separated by ``|``. The first
    alternative that is present is used.

    Parameters
    ----------
    data
        Fields of the object, by name.
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

    def size(
        self,
        name: str,
        default: int | None = None,
        low: int = 1,
        high: int = MAX_TOKENS,
        null: int | None = None,
    ) -> int:
        """Return an integer field, which must be at least `low` and at most `high`.

        Without a default, the field is required. If the field is present but null, `null` replaces
        the default, unless `null` is None.
        """
        if null and self.data.get(name, null) is None:
            return null
        value = self.get(name, default)
        if value is None:
            raise InvalidInput(f"{self.path(name)}: required field is missing")
        return integer(self.path(name), value, low, high)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a Boolean field, or the default if the field is absent or null."""
        return boolean(self.path(name), self.get(name, default))

    def choice(self, name: str, choices: Iterable[Any], default: Any = None) -> Any:
        """Return a field, or the default if the field is absent or null. The result must be one of
        `choices`.
        """
        return one_of(self.path(name), self.get(name, default), choices)

    def listed(
        self,
        name: str,
        default: tuple[int, ...] | None = None,
        size: int | None = None,
        low: int = 0,
    ) -> list[int]:
        """Return a list of integers >= 0, which may also be given as a comma-separated string.

        The list has exactly `size` entries, or at least `low` if `size` is None.
        """
        value = self.get(name, default)
        where = self.path(name)
        items = sequence(where, value.split(",") if isinstance(value, str) else value, size)
        integer(f"{where}, number of entries", len(items), low)
        return [
            integer(where, int(item) if str(item).strip().isdecimal() else item, 0, MAX_TOKENS)
            for item in items
        ]

    def quotient(self, dividend: str, total: int, divisor: str, parts: int) -> int:
        """Return `total` / `parts`, which must be an integer.

        The field names `dividend` and `divisor` are used only in the error message.
        """
        if total % parts:
            raise InvalidInput(
                f"{self.path(divisor)}: expected a divisor of {dividend} = {total}, got {parts}"
            )
        return total // parts

    def inside(self, name: str, default: Entry | None = None) -> Section:
        """Return the object in the field `name` as a section. Without a default, the field is
        required.
        """
        return Section(self.get(name, default), self.path(name))


class Config(Section):
    """The decoder section of a `config.json`.

    Parameters
    ----------
    data
        JSON data of the file.

    Attributes
    ----------
    whole
        JSON data of the whole file, including the parts outside the decoder section.
    notes
        Notes that are shown to the user, for example about defaults and parts that are not counted.
    model_type
        Name of the decoder's model type.
    type
        Entry for the model type in the table `fields.toml`. If the table does not contain the type,
        the entry covers only the attention, and its list of classes (``architecture``) is empty.
    formulas
        Formulas for the model type, evaluated for this config.
    """

    def __init__(self, data: Any) -> None:
        self.whole = Section(data)
        self.notes = dict[str, None]()
        path = next(filter(self.whole.given, TABLE["inside"]["fields"]), "")
        super().__init__(self.whole.get(path) if path else data, path)
        if path not in ("", "transformer_layer_config"):
            self.note(
                f"only {path} is counted, without the modules around it (image encoders and their"
                " projectors)"
            )
        self.model_type = self.data.get(
            "model_type", path and f"{self.whole.get('model_type')}_text"
        )
        other = MODEL_TYPES["latent" if self.data.get("kv_lora_rank") else "grouped"]
        self.type = MODEL_TYPES.get(str(self.model_type), other)
        self.formulas = Formulas(self, self.type["formulas"])

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field of the decoder.

        If the decoder section does not contain the field, the result is the model type's default,
        or `default` if there is none. A few fields (``around`` in `fields.toml`) may also stand
        outside the decoder section.
        """
        value = super().get(name)
        around = self.whole.data.get(name)
        if value is None and name in TABLE["around"]["fields"]:
            value = self.whole.get(name)
        elif value is None and name in self.type["defaults"]:
            value = self.type["defaults"][name]
            self.note(f"{name}: absent; {value}, the default of {self.model_type}")
        elif None not in (value, around) and around != value:
            raise InvalidInput(
                f"{self.path(name)}: {describe(value)} conflicts with {describe(around)}, the value"
                f" outside {self.where[:-1]}"
            )
        return default if value is None else value

    def note(self, text: str) -> None:
        """Add a note unless the same note is already present."""
        self.notes[text] = None

    def check(self, expected: Entry, *further: str) -> None:
        """Reject fields that do not belong to the model type.

        Such fields are ambiguous, because some programs use them and others ignore them.

        Parameters
        ----------
        expected
            Mapping from fields to formulas. Each formula computes the only value that the field may
            have.
        further
            Names of additional groups of fields (``marks`` in `fields.toml`) that are allowed
            besides the model type's own groups.
        """
        for name, mark in TABLE["marks"].items():
            if name in (*self.type["understands"], *further):
                continue
            for key, value in (*self.data.items(), *self.whole.data.items()):
                is_marked = any(fnmatchcase(str(key), field) for field in mark["fields"])
                if is_marked and value not in (None, False, [], {}, ""):
                    raise InvalidInput(
                        f"{printable(str(key))}: specopt does not count {mark['what']} for"
                        f" {self.model_type} (the value is {describe(value)}); {BY_HAND}"
                    )
        for name, formula in expected.items():
            found = self.get(name)
            if found is not None and found != (value := self.formulas.value(formula)):
                raise InvalidInput(
                    f"{self.path(name)}: expected {str(value).lower()}, as {self.model_type} has"
                    f" it, got {describe(found)}"
                )


@dataclass(frozen=True)
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


READERS = ("get", "given", "size", "flag", "listed", "quotient", "choice")
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
        super().__init__({name: getattr(section, name) for name in READERS}, len=len, round=round)
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
            role = role or ("linear" if len(shape) == 2 else "other")
            copies = active = 1
            if role == "expert":
                copies, active = self["experts"], self["experts_per_token"]
            if all(shape):
                yield Weight(prefix + name, shape, role, copies, active)


@cache
def _compiled(formula: str) -> CodeType:
    return compile(formula, "fields.toml", "eval")
