"""Reading of runtime coefficients from JSON-like data: per token, per operation, or the estimator
of paper 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, defstruct

from specopt.models.arguments import number
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import Amount, Floats, parse, read
from specopt.models.pass_time.additive import COEFFICIENTS, VerificationTime

TOKEN = "seconds_per_token"


@dataclass(frozen=True, kw_only=True, eq=False)
class Coefficients:
    """Coefficients of the features of a pass, with one row per piece. The coefficient of cached
    tokens is separate.
    """

    coefficients: Floats
    unit: str
    per_cached_token: float | None = None
    per_kv_byte: float | None = None

    @property
    def reading(self) -> str | None:
        """Name of the field with the time to read the cache, or None if there is no such field."""
        if self.per_cached_token is not None:
            return "seconds_per_cached_token"
        return None if self.per_kv_byte is None else "seconds_per_kv_byte"

    @property
    def kind(self) -> tuple[object, ...]:
        """Properties in which limits must agree with the fit."""
        return self.unit, self.reading

    def with_reading(self, decoder: Decoder | None, where: str) -> Floats:
        """Return the coefficients, including the coefficient of the cached tokens.

        Raises
        ------
        InvalidInput
            If bytes must be counted but the model is unknown.
        """
        if self.unit == "an estimator":
            return self.coefficients
        each = self.per_cached_token or 0.0
        if self.per_kv_byte is not None:
            if decoder is None:
                raise InvalidInput(
                    f"{where}.seconds_per_kv_byte: specify the model, whose cache determines the"
                    " bytes, or use seconds_per_cached_token"
                )
            each = self.per_kv_byte * decoder.kv_bytes_per_token
        return np.column_stack([self.coefficients, np.full(len(self.coefficients), each)])


def read_form(data: object, where: str) -> Coefficients:
    """Read the coefficients of a runtime or an estimator.

    Raises
    ------
    InvalidInput
        If a field is unknown, missing or outside its domain.
    """
    if isinstance(data, Mapping) and COEFFICIENTS[0] in data:
        estimator = parse(VerificationTime, data, where)
        return Coefficients(
            coefficients=np.array([[getattr(estimator, name) for name in COEFFICIENTS]]),
            unit="an estimator",
        )
    reading: dict[str, float] = {}
    if isinstance(data, Mapping):
        for name in ("seconds_per_cached_token", "seconds_per_kv_byte"):
            if name in data:
                reading[name] = number(f"{where}.{name}", data[name], 0, below=1e18)
        if len(reading) == 2:
            raise InvalidInput(
                f"{where}: expected seconds_per_cached_token or seconds_per_kv_byte, got both"
            )
        data = {key: value for key, value in data.items() if key not in reading}
    rows, unit = read_lines(data, where)
    return Coefficients(
        coefficients=rows,
        unit=unit,
        per_cached_token=reading.get("seconds_per_cached_token"),
        per_kv_byte=reading.get("seconds_per_kv_byte"),
    )


def read_lines(data: object, where: str) -> tuple[Floats, str]:
    """Read the slope and the overhead of every piece, shape (pieces, 2). Also return the name of
    the slope's field.

    Raises
    ------
    InvalidInput
        If a field is unknown, missing or outside its domain.
    """
    several = isinstance(data, Mapping) and "pieces" in data
    unit = TOKEN if f"'{TOKEN}'" in str(data) else "seconds_per_flop"
    line: Any = defstruct(
        "Line", [(unit, Amount), ("overhead_seconds", Amount)], forbid_unknown_fields=True
    )
    listed = Annotated[list[line], Meta(min_length=1)]
    pieces = defstruct("Pieces", [("pieces", listed)], forbid_unknown_fields=True)
    found = read(pieces if several else line, data, where)
    return (
        np.array([msgspec.structs.astuple(one) for one in (found.pieces if several else [found])]),
        unit,
    )
