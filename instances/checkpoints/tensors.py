"""Tensors of a checkpoint, listed by formulas over the fields of its config; `fields.toml` explains their syntax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from types import CodeType
from typing import Any

from specopt.instances.checkpoints.section import Section


@dataclass(frozen=True, kw_only=True)
class Weight:
    """Tensors of one shape.

    Parameters
    ----------
    name
        Name of the first one in checkpoints, without ``.weight``.
    shape
        Rows (outputs) and columns (inputs) of a matrix.
    role
        "linear" or "expert" (may be quantised), "router" (stays plain), "head" (the output matrix), "table" (one row is
        read per token), "tied" (both), or "other" (norms, biases, convolutions).
    copies
        Number of them: the experts of a layer.
    active
        Number of them that a token needs.
    """

    name: str
    shape: tuple[int, ...]
    role: str
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


READERS = ("get", "given", "size", "flag", "listed", "count", "quotient", "null_means", "choice", "entry")
"""Methods of a section that formulas may call."""


class Formulas(dict[str, Any]):
    """Values of named formulas for one config, computed when they are first asked for.

    Parameters
    ----------
    section
        The config.
    table
        Formulas by name.
    known
        Values by name, which go before formulas.
    """

    def __init__(self, section: Section, table: Mapping[str, str], **known: Any) -> None:
        super().__init__({name: getattr(section, name) for name in READERS}, **known)
        self.section, self.table, self.known = section, table, known

    def __missing__(self, name: str) -> Any:
        self[name] = self.value(self.table[name]) if name in self.table else self.section.size(name)
        return self[name]

    def value(self, formula: str) -> Any:
        """Return a formula's value."""
        return eval(_compiled(formula), {"__builtins__": {}}, self)

    def having(self, table: Mapping[str, str], **known: Any) -> Formulas:
        """Return these formulas with others, and further values, added or in their place."""
        return Formulas(self.section, {**self.table, **table}, **{**self.known, **known})

    def tensors(self, lines: Iterable[str], prefix: str = "", **names: str) -> Iterator[Weight]:
        """Yield the tensors whose conditions hold and that are not empty; their names begin with a prefix."""
        for line in lines:
            name, _, shape = line.format(**names).partition(": ")
            shape, _, condition = shape.partition(" if ")
            if condition and not self.value(condition):
                continue
            name, _, role = name.partition(" ")
            sizes = self.value(f"({shape},)")
            weight = Weight(name=prefix + name, shape=sizes, role=role or ("linear" if len(sizes) == 2 else "other"))
            if role == "expert":
                weight = replace(weight, copies=self["experts"], active=self["experts_per_token"])
            if all(sizes):
                yield weight


@cache
def _compiled(formula: str) -> CodeType:
    return compile(formula, "fields.toml", "eval")
