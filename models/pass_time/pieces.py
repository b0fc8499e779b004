"""The duration of a pass over a batch as a maximum of affine functions, called pieces.

The variables are the numbers of sequences, new tokens and cached tokens in the batch.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, Self

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Custom,
    Floats,
    NonNegative,
    parse,
    read,
    refuse_denormal,
)
from specopt.models.schema import schema


@dataclass(frozen=True, kw_only=True)
class Piece(Checked):
    """An affine function of the numbers of sequences, new tokens and cached tokens.

    Parameters
    ----------
    overhead_seconds
        Constant duration of every pass, in seconds.
    seconds_per_sequence
        Additional time per sequence, in seconds.
    seconds_per_token
        Additional time per new token, in seconds.
    seconds_per_cached_token
        Additional time per cached token, in seconds.
    """

    overhead_seconds: NonNegative
    seconds_per_sequence: NonNegative
    seconds_per_token: NonNegative
    seconds_per_cached_token: NonNegative


PIECE = tuple(Piece.__dataclass_fields__)


@dataclass(frozen=True, eq=False)
class PassPieces(Custom):
    """The duration of a pass as the maximum of several pieces. The JSON form is a list of objects.

    Each piece is an affine function o + s_b b + s_m m + s_c c of the numbers of sequences b, new
    tokens m and cached tokens c.

    Parameters
    ----------
    rows
        Coefficients of every piece in seconds, shape (pieces, 4). The columns contain the overhead,
        time per sequence, time per new token and time per cached token. All entries are >= 0.
    """

    rows: Floats

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build the pieces from a list of objects."""
        found = read(list[dict[str, Any]], data, where)
        if not found:
            raise InvalidInput(f"{where}: expected at least one piece, got none")
        pieces = tuple(parse(Piece, one, f"{where}[{at}]") for at, one in enumerate(found))
        refuse_denormal(pieces, where)
        return cls(np.array([astuple(piece) for piece in pieces]))

    def dump(self) -> list[dict[str, float]]:
        """Return the pieces as a list of objects."""
        return [dict(zip(PIECE, row, strict=True)) for row in self.rows.tolist()]

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for the list of objects."""
        return {"type": "array", "minItems": 1, "items": schema(Piece)}

    def at(self, sequences: float, new_tokens: float, cached_tokens: float) -> float:
        """Return the duration of a pass, in seconds. The arguments are totals over the batch.

        Examples
        --------
        >>> PassPieces(np.array([[0.02, 0.0, 0.001, 0.0], [0.03, 0.0, 0.0, 0.0]])).at(4, 20, 0)
        0.04
        """
        return float((self.rows @ np.array([1.0, sequences, new_tokens, cached_tokens])).max())

    def scaled(self, factor: float) -> PassPieces:
        """Return the pass times on a machine on which every pass takes `factor` times as long."""
        return PassPieces(self.rows * factor)
