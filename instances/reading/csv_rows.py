"""The rows of CSV files with a header, read strictly."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

from specopt.instances.reading.lines import Lines
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.files import DECIMAL

_LONGEST_DECIMAL = 60


def csv_rows(lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """Yield the line that each row begins on, and its fields: first the header, stripped, then rows
    of its length.

    Blank lines are skipped.

    Raises
    ------
    InvalidInput
        If there is no header, or a row is malformed or has another length than it; the message
        names the line.
    """
    header: list[str] = []
    done = 0  # lines of the rows before
    try:
        for fields in csv.reader(lines, strict=True):
            line, done = done + 1, lines.number
            if len(fields) < 2 and not "".join(fields).strip():
                continue
            if not header:
                fields = header = [field.strip() for field in fields]
            elif len(fields) != len(header):
                missing = header[len(fields)] if len(fields) < len(header) else None
                raise lines.refuse(line, f"{len(header)} fields, as in the header", fields, missing)
            yield line, fields
    except csv.Error as error:
        raise InvalidInput(
            f"{lines.where}: line {done + 1}: expected a row of a CSV file: {error}"
        ) from None
    if not header:
        raise InvalidInput(f"{lines.where}: expected a table, got an empty file")


def place(lines: Lines, line: int, header: Sequence[str], name: str) -> int:
    """Return where a column stands in a header.

    Raises
    ------
    InvalidInput
        If the header lacks the column or has it twice.
    """
    if header.count(name) != 1:
        often = "has it twice" if name in header else f"has {printable(', '.join(header))}"
        raise InvalidInput(
            f"{lines.where}: line {line}: expected one column {name!r}, the header {often}"
        )
    return header.index(name)


def column_names(
    columns: Mapping[str, str] | None, usual: Mapping[str, str], possible: Sequence[str] = ()
) -> dict[str, str]:
    """Return what the columns of a file are called, by what they hold.

    Parameters
    ----------
    columns
        The names that the user gives.
    usual
        The names of the columns that every file has, unless others are given.
    possible
        What more a file may hold: there only if it is named.

    Raises
    ------
    InvalidInput
        If there is no such column, a name is blank, or two columns have the same.
    """
    known = (*usual, *possible)
    for key, name in (columns or {}).items():
        if key not in known:
            raise InvalidInput(
                f"columns: expected keys among {', '.join(known)}, got {describe(key)}"
            )
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(
                f"columns: expected the name of a column for {key}, got {describe(name)}"
            )
    names = {key: name.strip() for key, name in {**usual, **(columns or {})}.items()}
    if len(set(names.values())) < len(names):
        raise InvalidInput(
            f"columns: expected {len(names)} different columns, got {', '.join(names.values())}"
        )
    return names


def decimal(text: str) -> float | None:
    """Return a finite number in decimal notation, spaces around it; None: the text is none."""
    text = text.strip()
    if len(text) > _LONGEST_DECIMAL or not DECIMAL.fullmatch(text):
        return None
    value = float(text)
    return value if abs(value) < float("inf") else None
