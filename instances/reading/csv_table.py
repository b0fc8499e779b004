"""CSV tables with a header: columns are found by name, whatever their order; only those asked for are looked at."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from specopt.instances.reading.lines import Lines
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def csv_rows(lines: Lines, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of these columns, as they are, of each row below the header.

    Byte-order marks, CRLF, blank lines and a missing last newline are fine.

    Raises
    ------
    InvalidInput
        If there is no header, it lacks a column or has it twice, or a row has another length.
    """
    header: list[str] = []
    done = 0  # lines of the rows before
    try:
        for cells in csv.reader(lines, strict=True):
            line, done = done + 1, lines.number
            if len(cells) < 2 and not "".join(cells).strip():
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                places = [_place(lines, line, header, name) for name in columns]
                continue
            if len(cells) != len(header):
                missing = header[len(cells)] if len(cells) < len(header) else None
                raise lines.refuse(line, f"{len(header)} fields, as in the header", cells, missing)
            yield line, [cells[place] for place in places]
    except csv.Error as error:
        raise InvalidInput(f"{lines.where}: line {done + 1}: expected a row of a CSV file: {error}") from None
    if not header:
        raise InvalidInput(f"{lines.where}: expected a table, got an empty file")


def has_columns(line: str, columns: Sequence[str]) -> bool:
    """Tell whether a header has these columns."""
    try:
        header = next(csv.reader([line], strict=True), [])
    except csv.Error:
        return False
    return set(columns) <= {cell.strip() for cell in header}


def column_names(named: Mapping[str, str] | None, default: Mapping[str, str], optional: str) -> dict[str, str]:
    """Return the columns to read by what they hold: those that a user named, and the default names of the others.

    Raises
    ------
    InvalidInput
        If a key is none of the default ones nor the optional one, or two of the default ones name one column.
    """
    known = (*default, optional)
    for key, name in (named or {}).items():
        if key not in known:
            raise InvalidInput(f"columns: expected keys among {', '.join(known)}, got {describe(key)}")
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"columns: expected the name of a column for {key}, got {describe(name)}")
    names = {key: name.strip() for key, name in ({**default, **(named or {})}).items()}
    needed = [names[key] for key in default]
    if len(set(needed)) < len(needed):
        raise InvalidInput(f"columns: expected {len(needed)} different columns, got {', '.join(needed)}")
    return names


def number_in(cell: str) -> float | None:
    """Return a finite number, None if the cell holds none: no words such as nan, nothing but the ten digits."""
    cell = cell.strip()
    if len(cell) > 60 or not _NUMBER.fullmatch(cell):
        return None
    value = float(cell)
    return value if math.isfinite(value) else None


def count_in(cell: str, most: int) -> int | None:
    """Return a whole number up to the most, None if the cell holds none: no sign, no fraction."""
    cell = cell.strip()
    if cell.isdecimal() and cell.isascii() and len(cell) < 20 and (value := int(cell)) <= most:
        return value
    return None


def _place(lines: Lines, line: int, header: Sequence[str], name: str) -> int:
    if header.count(name) != 1:
        often = "has it twice" if name in header else f"has {', '.join(header)[:400]!r}"
        raise InvalidInput(f"{lines.where}: line {line}: expected one column {name!r}, the header {often}")
    return header.index(name)
