"""The fields of one object in a benchmark's file, checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping

from specopt.instances.reading.csv_rows import decimal
from specopt.instances.sweeps.rows import Rows
from specopt.models.arguments import is_number, number
from specopt.models.errors import InvalidInput


class Fields:
    """An object of JSON, or a row of a table; what is null, empty or no number (NaN) counts as
    missing.

    Parameters
    ----------
    rows
        The runs of the file, for its name.
    place
        Where the object stands in it; the names of fields follow it in messages.
    data
        The object; hyphens in its keys count as underscores.

    Raises
    ------
    InvalidInput
        If the data is no object.
    """

    def __init__(self, rows: Rows, place: str, data: object) -> None:
        if not isinstance(data, Mapping):
            raise rows.refuse(place.rstrip("., ") or "the top level", "an object", data)
        self.rows, self.place = rows, place
        known = {
            key: value for key, value in data.items() if value not in (None, "") and value == value
        }
        self.values = {str(key).replace("-", "_"): value for key, value in known.items()}

    def number(self, *names: str, expected: str = "a number") -> float | None:
        """Return the first of these fields that is there, as a number; texts may spell it."""
        name = next((name for name in names if name in self.values), None)
        if name is None:
            return None
        value = self.values[name]
        spelt = decimal(value) if isinstance(value, str) else value
        if not is_number(spelt):
            raise self.refuse(name, expected, value)
        try:
            return number(name, spelt)
        except InvalidInput as error:
            raise InvalidInput(f"{self.rows.where}: {self.place}{error}") from None

    def numbers(self, names: Mapping[str, str]) -> dict[str, float]:
        """Return the positive numbers that are there, by the names that they are to have."""
        found = {name: self.number(field) for name, field in names.items()}
        return {name: value for name, value in found.items() if value}

    def integer(self, *names: str, expected: str = "an integer") -> int | None:
        """Return the first of these fields that is there, as an integer."""
        value = self.number(*names, expected=expected)
        if value is not None and not value.is_integer():
            name = next(name for name in names if name in self.values)
            raise self.refuse(name, expected, self.values[name])
        return None if value is None else int(value)

    def needed(self, name: str, expected: str = "an integer") -> int:
        """Return a field that must be there, as an integer."""
        value = self.integer(name, expected=expected)
        if value is None:
            raise self.refuse(name, expected, "")
        return value

    def text(self, *names: str) -> str:
        """Return the first of these fields that is there, as a text; empty: none is."""
        name = next((name for name in names if name in self.values), None)
        if name is None:
            return ""
        value = self.values[name]
        if not isinstance(value, str):
            raise self.refuse(name, "a text", value)
        return value.strip()

    def inner(self, name: str) -> Fields:
        """Return the object of a field; empty: it is missing."""
        return Fields(self.rows, f"{self.place}{name}.", self.values.get(name, {}))

    def entries(self, name: str) -> list[Fields]:
        """Return the objects of a field that holds a list of them."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.refuse(name, "a list", value)
        return [
            Fields(self.rows, f"{self.place}{name}[{i}].", entry) for i, entry in enumerate(value)
        ]

    def refuse(self, name: str, expected: str, got: object) -> InvalidInput:
        """Return the exception that names a field, what was expected there and what came."""
        return self.rows.refuse(f"{self.place}{name}", expected, got)
