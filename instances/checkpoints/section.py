"""An object of a config file, read field by field: what is refused is named by its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from specopt.models.arguments import boolean, integer, one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

MAX_LAYERS = 10_000
"""Largest number of layers that a config may have: each is counted by itself."""


class Section:
    """An object of a config file.

    In names of fields, dots lead into objects, and ``|`` is between alternatives: the first that is there
    holds.

    Parameters
    ----------
    data
        The object.
    name
        Its path in the file.
    """

    def __init__(self, data: object, name: str = "") -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput(f"{name or 'the top level'}: expected an object, got {describe(data)}")
        self.data: Mapping[str, Any] = data
        self.where = name and f"{name}."

    def get(self, name: str) -> Any:
        """Return a field; None where it is absent or null."""
        for path in name.split("|"):
            value: Any = self.data
            for key in path.split("."):
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        return None

    def given(self, name: str) -> bool:
        """Return whether there is such a field."""
        return self.get(name) is not None

    def path(self, name: str) -> str:
        """Return what a message calls a field."""
        return self.where + name.partition("|")[0]

    def size(self, name: str, default: int | None = None, low: int = 1) -> int:
        """Return an integer >= `low`; without a default it has to be there."""
        value = self.get(name)
        if value is None:
            if default is None:
                raise InvalidInput(f"{self.path(name)}: required field is missing")
            return default
        return integer(self.path(name), value, low, MAX_LAYERS if name.endswith("_layers") else MAX_TOKENS)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a field that is true or false."""
        return default if (value := self.get(name)) is None else boolean(self.path(name), value)

    def choice(self, name: str, choices: tuple[Any, ...], default: Any = None) -> Any:
        """Return a field that has one of some values."""
        return one_of(self.path(name), self.get(name) if self.given(name) else default, choices)

    def entries(self, name: str, size: int | None = None) -> list[Any]:
        """Return a list of some size; a string is one, with commas between its entries."""
        value = self.get(name)
        return sequence(self.path(name), value.split(",") if isinstance(value, str) else value, size)

    def listed(self, name: str, default: tuple[int, ...] | None = None) -> frozenset[int]:
        """Return the numbers in a list."""
        if default is not None and not self.given(name):
            return frozenset(default)
        items = [int(item) if str(item).strip().isdecimal() else item for item in self.entries(name)]
        return frozenset(integer(self.path(name), item, 0, MAX_TOKENS) for item in items)

    def count(self, name: str, default: int | None = None) -> int:
        """Return how many entries a list has; it may be empty if the default is 0."""
        if default is not None and not self.given(name):
            return default
        return integer(f"{self.path(name)}, number of entries", len(self.entries(name)), 0 if default == 0 else 1)

    def entry(self, name: str, index: int) -> int:
        """Return one of two sizes in a list."""
        return integer(self.path(name), self.entries(name, 2)[index], 1, MAX_TOKENS)

    def quotient(self, dividend: str, divisor: str) -> int:
        """Return a field divided by another one, without a remainder."""
        total, parts = self.size(dividend), self.size(divisor)
        if total % parts:
            raise InvalidInput(f"{self.path(divisor)}: expected a divisor of {dividend} = {total}, got {parts}")
        return total // parts

    def null_means(self, name: str, value: int) -> int:
        """Return a field that has to be there, but may be null."""
        return value if self.data.get(name, value) is None else self.size(name)

    def patterns(self, name: str) -> list[str]:
        """Return a list of names and, behind ``re:``, of regular expressions for names."""
        found = sequence(self.path(name), self.get(name) or [])
        for item in found:
            if not isinstance(item, str):
                raise InvalidInput(f"{self.path(name)}: expected names, got {describe(item)}")
            try:
                re.compile(item[3:] if item.startswith("re:") else "")
            except re.error as error:
                raise InvalidInput(f"{self.path(name)}: expected regular expressions ({error})") from None
        return found

    def sections(self, name: str) -> dict[str, Section]:
        """Return the objects in a field that is an object."""
        inside = Section(self.get(name), self.path(name))
        return {str(key): Section(item, f"{inside.where}{key}") for key, item in inside.data.items()}
