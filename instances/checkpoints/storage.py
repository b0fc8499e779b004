"""The bytes that tensors take as they are stored, plain or quantised.

Counted are the packed values and what belongs to them: scales per block of values, zero points, the order of columns.
Routers, norms, biases, convolutions and tables of embeddings stay plain in every method; so does the output matrix,
unless the config quantises it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from specopt.instances.checkpoints.weights import Weight


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How a matrix is quantised.

    Parameters
    ----------
    bits
        Of a value.
    rows, columns
        Of the block that shares a scale; 0: all of them.
    scale_bits
        Of scale and zero point of a block.
    column_bits, matrix_bits
        Of what is stored once per column, and once per matrix.
    """

    bits: int
    rows: int = 0
    columns: int = 0
    scale_bits: float = 0
    column_bits: int = 0
    matrix_bits: int = 0

    def bytes(self, rows: int, columns: int) -> int:
        """Return the bytes of a matrix."""
        blocks = -(-rows // (self.rows or rows)) * -(-columns // (self.columns or columns))
        bits = rows * columns * self.bits + columns * self.column_bits + self.matrix_bits
        return -(-(bits + round(blocks * self.scale_bits)) // 8)


EXPONENTS = Scheme(bits=4, rows=1, columns=32, scale_bits=8)
"""Blocks of 32 values of 4 bits, with an exponent of 8 (MXFP4)."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """In how many bytes weights and cached values are kept.

    Parameters
    ----------
    value_bytes, kv_value_bytes
        Of a plain weight, and of a cached value.
    method
        The quantisation's name, if there is one.
    schemes
        By pattern of names, first match first; ``*`` means all.
    kept
        Patterns of what stays plain.
    head
        Whether the output matrix is quantised, unless it is kept.
    experts_only
        Whether nothing but routed experts is quantised.
    """

    value_bytes: int = 2
    kv_value_bytes: int = 2
    method: str | None = None
    schemes: tuple[tuple[str, Scheme], ...] = ()
    kept: tuple[str, ...] = ()
    head: bool = False
    experts_only: bool = False

    def bytes(self, weight: Weight) -> int:
        """Return the bytes of all copies of a tensor."""
        scheme = self.scheme(weight)
        if scheme is None:
            return weight.values * self.value_bytes
        return weight.copies * scheme.bytes(*weight.shape)

    def scheme(self, weight: Weight) -> Scheme | None:
        """Return how a tensor is quantised; None: it is not."""
        roles = {"expert"} | (set() if self.experts_only else {"linear"}) | ({"head"} if self.head else set())
        if len(weight.shape) != 2 or weight.role not in roles or any(_names(item, weight.name) for item in self.kept):
            return None
        return next((scheme for pattern, scheme in self.schemes if _names(pattern, weight.name)), None)


def _names(pattern: str, name: str) -> bool:
    """Return whether a pattern of a quantisation config means a module: ``re:...``, wildcards, or part of its path."""
    pattern = pattern.replace("language_model.", "")
    if pattern.startswith("re:"):
        return re.match(pattern[3:], name) is not None
    return f".{pattern}." in f".{name}." or fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")
