"""Reader for golden acceptance lengths, which are reference values of mean tokens per step.

The YAML or JSON file has the form ``{model: {mode: {1: 1.84, 2: 2.51, ...}}}``. Modes have names
such as ``thinking_on``, and the innermost keys are draft lengths. Users can specify their own
lengths in the form ``{"acceptance_lengths": {"1": 1.84, ...}}``, optionally with ``lower`` and
``upper``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from specopt.models.acceptance_lengths import MAX_LENGTH, AcceptanceLengths
from specopt.models.arguments import boolean, number, only_fields, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.position_acceptance import LEVEL

OWN = {"acceptance_lengths", "lower", "upper", "level", "extrapolate", "notes"}


def is_golden(data: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether the data looks like a table of acceptance lengths for each model and mode."""
    return (
        isinstance(data, Mapping)
        and bool(data)
        and all(
            isinstance(modes, Mapping)
            and modes
            and all(_is_table(table) for table in modes.values())
            for modes in data.values()
        )
    )


def from_golden(
    data: Mapping[Any, Any], where: str, model: str | None, mode: str | None
) -> AcceptanceLengths:
    """Return the golden acceptance lengths for one model in one mode.

    Raises
    ------
    InvalidInput
        If the model or mode is ambiguous or unknown, or if a length is outside its domain.
    """
    model, modes = _chosen(f"{where}: model", data, model)
    mode, table = _chosen(f"{where}: mode of {model}", modes, mode)
    return AcceptanceLengths.exactly(_lengths(f"{where}.{model}.{mode}", table))


def from_own(data: Mapping[str, Any], where: str) -> AcceptanceLengths:
    """Return the acceptance lengths specified by a user.

    Raises
    ------
    InvalidInput
        If a field is unknown, missing or outside its domain.
    """
    only_fields(data, OWN, where)
    columns = {
        name: _lengths(f"{where}.{name}", data.get(name, data["acceptance_lengths"]))
        for name in ("acceptance_lengths", "lower", "upper")
    }
    lengths = tuple(columns["acceptance_lengths"])
    for name, column in columns.items():
        if tuple(column) != lengths:
            raise InvalidInput(
                f"{where}.{name}: expected the draft lengths {', '.join(map(str, lengths))}"
            )
    tokens, lower, upper = (np.array(list(column.values())) for column in columns.values())
    notes = sequence(f"{where}.notes", data.get("notes", []))
    return AcceptanceLengths(
        lengths=lengths,
        tokens=tokens,
        lower=lower,
        upper=upper,
        level=number(f"{where}.level", data.get("level", LEVEL), above=0, below=1),
        extrapolate=boolean(f"{where}.extrapolate", data.get("extrapolate", False)),
        notes=tuple(str(note) for note in notes),
    )


def _chosen(name: str, entries: Mapping[Any, Any], chosen: str | None) -> tuple[str, Any]:
    known = {str(key): value for key, value in entries.items()}
    if chosen is None and len(known) > 1:
        raise InvalidInput(
            f"{name}: expected one entry, got {', '.join(sorted(known))}; select one with"
            f" --{name.rpartition(': ')[2].partition(' ')[0]}"
        )
    if chosen is not None and chosen not in known:
        raise InvalidInput(f"{name}: expected {', '.join(sorted(known))}, got {chosen!r}")
    key = chosen or next(iter(known))
    return key, known[key]


def _is_table(table: object) -> bool:
    return isinstance(table, Mapping) and bool(table) and all(str(key).isdecimal() for key in table)


def _lengths(name: str, table: object) -> dict[int, float]:
    """Check a table of acceptance lengths and return it sorted by draft length.

    The keys may be strings, because JSON has no integer keys.
    """
    if not isinstance(table, Mapping) or not _is_table(table):
        raise InvalidInput(
            f"{name}: expected mean numbers of tokens by draft length, got {describe(table)}"
        )
    for key in table:
        if not 1 <= int(key) <= MAX_LENGTH:
            raise InvalidInput(f"{name}: expected draft lengths from 1 to {MAX_LENGTH}, got {key}")
    return {
        length: number(f"{name}.{length}", value, 1, 1 + length)
        for length, value in sorted((int(key), value) for key, value in table.items())
    }
