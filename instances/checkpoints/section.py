"""An object of a config file, read field by field: what is refused is named by its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specopt.models.arguments import boolean, integer, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

MAX_LAYERS = 10_000
"""Largest number of layers that a config may have: each is counted by itself."""


class Section:
    """An object of a config file.

    In names of fields, dots lead into objects, and ``|`` is between alternatives of which the first that is there holds.

    Parameters
    ----------
    data
        The object.
    path
        Its path in the file.
    """

    def __init__(self, data: object, path: str = "") -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput(f"{path or 'the top level'}: expected an object, got {describe(data)}")
        self.data: Mapping[str, Any] = data
        self.where = f"{path}." if path else ""

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
        value = self.get(name)
        return default if value is None else boolean(self.path(name), value)

    def listed(self, name: str, default: tuple[int, ...] | None = None) -> frozenset[int]:
        """Return the numbers in a list, which may also be a string with commas."""
        value = self.get(name)
        if value is None and default is not None:
            return frozenset(default)
        items = value.split(",") if isinstance(value, str) else sequence(self.path(name), value)
        numbers = [int(item) if isinstance(item, str) and item.strip().isdecimal() else item for item in items]
        return frozenset(integer(self.path(name), item, 0, MAX_TOKENS) for item in numbers)

    def count(self, name: str, default: int | None = None) -> int:
        """Return how many entries a list has."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        found = len(sequence(self.path(name), value))
        if found == 0 and not default == 0:
            raise InvalidInput(f"{self.path(name)}: expected at least one entry, got none")
        return found

    def quotient(self, dividend: str, divisor: str) -> int:
        """Return a field divided by another one, without a remainder."""
        total, parts = self.size(dividend), self.size(divisor)
        if total % parts:
            raise InvalidInput(f"{self.path(divisor)}: expected a divisor of {dividend} = {total}, got {parts}")
        return total // parts

    def null_means(self, name: str, value: int) -> int:
        """Return a field that has to be there, but may be null."""
        return value if self.data.get(name, value) is None else self.size(name)

    def section(self, name: str) -> Section:
        """Return a field that is an object."""
        return Section(self.get(name), self.path(name))
