"""Classes that read and check the fields of JSON objects and the cells of CSV tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import cached_property

from specopt.instances.reading.lines import Lines
from specopt.models.arguments import is_number, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.files import DECIMAL

_LONGEST_DECIMAL = 60


class Fields:
    """A JSON object or a row of a table.

    Values that are null, empty or NaN are treated as missing.

    Parameters
    ----------
    where
        Name of the file, used in messages.
    place
        Position of the object in the file, which precedes field names in messages.
    data
        Data of the object. Hyphens in keys are read as underscores.

    Raises
    ------
    InvalidInput
        If the data is not an object.
    """

    def __init__(self, where: str, place: str, data: object) -> None:
        self.where, self.place = where, place
        if not isinstance(data, Mapping):
            name = place.rstrip("., ") or "the top level"
            raise InvalidInput(f"{where}: {name}: expected an object, got {describe(data)}")
        known = {
            key: value for key, value in data.items() if value not in (None, "") and value == value
        }
        self.values = {str(key).replace("-", "_"): value for key, value in known.items()}

    def number(self, *names: str, expected: str = "a number") -> float | None:
        """Return the number in the first of the named fields that is present.

        Strings are converted. The result is None if all fields are missing.
        """
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
            raise InvalidInput(f"{self.where}: {self.place}{error}") from None

    def numbers(self, names: Mapping[str, str]) -> dict[str, float]:
        """Return the numbers in the named fields, without missing fields and zeros.

        `names` maps the names in the result to the names in the data.
        """
        found = {name: self.number(field) for name, field in names.items()}
        return {name: value for name, value in found.items() if value}

    def integer(self, *names: str, expected: str = "an integer") -> int | None:
        """Return the integer in the first of the named fields that is present.

        The result is None if all fields are missing.
        """
        value = self.number(*names, expected=expected)
        if value is not None and not value.is_integer():
            name = next(name for name in names if name in self.values)
            raise self.refuse(name, expected, self.values[name])
        return None if value is None else int(value)

    def needed(self, name: str, expected: str = "an integer") -> int:
        """Return the integer in a required field."""
        value = self.integer(name, expected=expected)
        if value is None:
            raise self.refuse(name, expected, "")
        return value

    def text(self, *names: str) -> str:
        """Return the string in the first of the named fields that is present.

        The string is empty if all fields are missing.
        """
        name = next((name for name in names if name in self.values), None)
        if name is None:
            return ""
        value = self.values[name]
        if not isinstance(value, str):
            raise self.refuse(name, "a string", value)
        return value.strip()

    def inner(self, name: str) -> Fields:
        """Return the object in a field, or an empty object if the field is missing."""
        return Fields(self.where, f"{self.place}{name}.", self.values.get(name, {}))

    def entries(self, name: str) -> list[Fields]:
        """Return the objects in a field that contains a list of objects."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.refuse(name, "a list", value)
        return [
            Fields(self.where, f"{self.place}{name}[{i}].", entry) for i, entry in enumerate(value)
        ]

    def refuse(self, name: str, expected: str, got: object) -> InvalidInput:
        """Return an exception that names the field and states the expected and actual values."""
        place = f"{self.place}{printable(name)}"
        return InvalidInput(f"{self.where}: {place}: expected {expected}, got {describe(got)}")


class Row(Fields):
    """A row of a CSV table, whose cells contain strings.

    Parameters
    ----------
    where
        Name of the file, used in messages.
    line
        Line number at which the row begins.
    columns
        Position of each column.
    cells
        String in each cell.
    """

    def __init__(self, where: str, line: int, columns: dict[str, int], cells: list[str]) -> None:
        self.where = where
        self.line = line
        self.columns = columns
        self.cells = cells

    @property
    def place(self) -> str:  # type: ignore[override]
        """Line number of the row, used in messages."""
        return f"line {self.line}, "

    @cached_property
    def values(self) -> dict[str, str]:  # type: ignore[override]
        """Mapping from column names to the strings in the cells that are not empty."""
        return {name: text for name in self.columns if (text := self.text_of(name))}

    def text_of(self, name: str) -> str:
        """Return the string in a cell, without leading and trailing spaces."""
        return self.cells[self.columns[name]].strip()

    def within(self, name: str, expected: str, low: float, high: float) -> float:
        """Return the number in a cell, and reject numbers that are not between `low` and `high`."""
        text = self.text_of(name)
        value = decimal(text)
        if value is None or not low <= value <= high:
            raise self.refuse(name, expected, text)
        return value


class CsvFile:
    """A CSV file with a header, parsed strictly.

    Iterating over the object yields the rows.

    Parameters
    ----------
    lines
        Lines of the file.

    Attributes
    ----------
    header
        Names of the columns, without leading and trailing spaces.
    line
        Line number of the header.

    Raises
    ------
    InvalidInput
        If the header is missing, or if a row is malformed or differs in length from the header. The
        message states the line number.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._rows = self._read()
        self.line, header = next(self._rows, (0, []))
        self.header = [name.strip() for name in header]
        if not self.header:
            raise InvalidInput(f"{lines.where}: expected a table, got an empty file")

    def need(self, *names: str) -> None:
        """Reject the file if the header does not contain each of the given columns exactly once."""
        for name in names:
            if self.header.count(name) != 1:
                known = printable(", ".join(self.header))
                often = "has it twice" if name in self.header else f"has {known}"
                raise InvalidInput(
                    f"{self.lines.where}: line {self.line}: expected exactly one column {name!r},"
                    f" but the header {often}"
                )

    def __iter__(self) -> Iterator[Row]:
        header = self.header
        size = len(self.header)
        where = self.lines.where
        columns = {name: at for at, name in enumerate(header)}
        for line, cells in self._rows:
            if len(cells) != size:
                missing = header[len(cells)] if len(cells) < size else None
                expected = f"{size} fields, as in the header"
                raise self.lines.refuse(line, expected, cells, missing)
            yield Row(where, line, columns, cells)

    def _read(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the starting line number and the cells of each row, skipping blank lines."""
        done = 0  # number of lines read before this row
        try:
            for cells in csv.reader(self.lines, strict=True):
                line, done = done + 1, self.lines.number
                if len(cells) > 1 or "".join(cells).strip():
                    yield line, cells
        except csv.Error as error:
            raise InvalidInput(
                f"{self.lines.where}: line {done + 1}: expected a row of a CSV file: {error}"
            ) from None


def decimal(text: str) -> float | None:
    """Return the number in `text`, or None if `text` is not a finite number in decimal notation."""
    text = text.strip()
    if len(text) > _LONGEST_DECIMAL or not DECIMAL.fullmatch(text):
        return None
    value = float(text)
    return value if abs(value) < float("inf") else None
