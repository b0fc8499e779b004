"""Tensors of a checkpoint: name, shape, and what they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

Role = Literal["linear", "expert", "router", "head", "table", "tied", "other"]
"""What a tensor is for: linear layers and routed experts (may be quantised), the choice of experts, the output matrix,
tables with one row read per token, or one tensor for both. The rest are norms, biases and convolutions."""


@dataclass(frozen=True, kw_only=True)
class Weight:
    """Tensors of one shape.

    Parameters
    ----------
    name
        The first one's, as checkpoints name it (without ``.weight``).
    shape
        Rows (outputs) and columns (inputs) of a matrix.
    role
        What it is for.
    copies
        How many there are: the experts of a layer.
    active
        How many of them a token needs.
    """

    name: str
    shape: tuple[int, ...]
    role: Role = "linear"
    copies: int = 1
    active: int = 1

    @property
    def values(self) -> int:
        """Entries of all copies."""
        return self.copies * prod(self.shape)

    @property
    def active_values(self) -> int:
        """Entries of the copies that a token needs."""
        return self.active * prod(self.shape)

    @property
    def is_matrix(self) -> bool:
        """Whether each layer's pass multiplies by it."""
        return len(self.shape) == 2 and self.role in ("linear", "expert", "router")


def matrix(name: str, rows: int, columns: int, bias: bool = False) -> Iterator[Weight]:
    """Yield the weights of a linear layer."""
    yield Weight(name=name, shape=(rows, columns))
    if bias:
        yield vector(f"{name}.bias", rows)


def vector(name: str, *shape: int) -> Weight:
    """Return a norm, a bias, or a tensor that is no matrix of a linear layer."""
    return Weight(name=name, shape=shape, role="other")


def under(prefix: str, weights: Iterable[Weight]) -> Iterator[Weight]:
    """Yield the weights of a part of the model under the part's name."""
    for weight in weights:
        yield replace(weight, name=f"{prefix}.{weight.name}")
