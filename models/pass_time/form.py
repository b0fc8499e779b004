"""Functions that read runtime coefficients from JSON-like data.

The coefficients are given per token, per operation, or as the four coefficients of paper 2's
estimator.
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

TOKEN, KV_BYTE = "seconds_per_token", "seconds_per_kv_byte"


@dataclass(frozen=True, kw_only=True, eq=False)
class Coefficients:
    """Coefficients of a pass time as read from a file. The coefficient for cached tokens is stored
    separately.

    Parameters
    ----------
    coefficients
        Coefficients of the features, shape (pieces, features), without the coefficient for cached
        tokens.
    unit
        Name of the field that contains the slope, or "an estimator" for paper 2's estimator.
    reading
        Name of the field that contains the time to read the cache, or None if there is no such
        field.
    seconds
        Value of the field whose name is `reading`.
    """

    coefficients: Floats
    unit: str
    reading: str | None = None
    seconds: float = 0.0

    def with_reading(self, decoder: Decoder | None, where: str) -> Floats:
        """Return the coefficients, including the coefficient for cached tokens.

        Raises
        ------
        InvalidInput
            If the coefficient for cached tokens is per byte but the decoder is not known.
        """
        if self.unit == "an estimator":
            return self.coefficients
        each = self.seconds
        if self.reading == KV_BYTE:
            if decoder is None:
                raise InvalidInput(
                    f"{where}.seconds_per_kv_byte: specify the model, whose cache determines the"
                    " bytes, or use seconds_per_cached_token"
                )
            each *= decoder.kv_bytes_per_token
        return np.column_stack([self.coefficients, np.full(len(self.coefficients), each)])


def read_form(data: object, where: str) -> Coefficients:
    """Read the coefficients of a linear or piecewise-linear runtime, or of paper 2's estimator.

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
    reading: str | None = None
    seconds = 0.0
    if isinstance(data, Mapping):
        for name in ("seconds_per_cached_token", KV_BYTE):
            if name not in data:
                continue
            if reading is not None:
                raise InvalidInput(
                    f"{where}: expected seconds_per_cached_token or seconds_per_kv_byte, got both"
                )
            reading, seconds = name, number(f"{where}.{name}", data[name], 0, below=1e18)
        data = {key: value for key, value in data.items() if key != reading}
    rows, unit = read_lines(data, where)
    return Coefficients(coefficients=rows, unit=unit, reading=reading, seconds=seconds)


def read_lines(data: object, where: str) -> tuple[Floats, str]:
    """Read the slope and the overhead of every linear piece of a runtime.

    Returns
    -------
    tuple
        Slopes and overheads, shape (pieces, 2), and the name of the field that contains the slope.

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
