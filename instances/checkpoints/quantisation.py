"""The bytes that tensors take as they are stored, plain or as `quantization_config` says, method by method.

Counted are the packed values and what belongs to them: scales per block of values, zero points, the order of columns.
Routers, norms, biases, convolutions and tables of embeddings stay plain in every method. So does the output matrix,
unless the config quantises it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain

from specopt.instances.checkpoints.fields import QUANTISATION
from specopt.instances.checkpoints.section import Section
from specopt.instances.checkpoints.tensors import Formulas, Weight
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

BY_DTYPE = "count its bytes at a fixed size with --dtype instead"

KEPT = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules")
"""Fields that list what stays plain."""


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How a matrix is quantised.

    Parameters
    ----------
    bits
        Bits of a value.
    rows, columns
        Size of the block that shares a scale; 0 means all of them.
    scale_bits
        Bits of scale and zero point of a block.
    column_bits, matrix_bits
        Bits that are stored once per column, and once per matrix.
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


@dataclass(frozen=True, kw_only=True)
class Storage:
    """In how many bytes weights and cached values are kept.

    Parameters
    ----------
    value_bytes, kv_value_bytes
        Bytes of a plain weight, and of a cached value.
    method
        Name of the quantisation; None if there is none.
    schemes
        Schemes by pattern of names; the first match holds, and ``*`` means all.
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
        """Return how a tensor is quantised; None if it is not."""
        roles = {"expert": True, "linear": not self.experts_only, "head": self.head}
        if len(weight.shape) != 2 or not roles.get(weight.role) or any(_names(item, weight.name) for item in self.kept):
            return None
        return next((scheme for pattern, scheme in self.schemes if _names(pattern, weight.name)), None)


def _names(pattern: str, name: str) -> bool:
    """Return whether a pattern of a quantisation config means a module: ``re:...``, wildcards, or part of its path."""
    pattern = pattern.replace("language_model.", "")
    if pattern.startswith("re:"):
        return re.match(pattern[3:], name) is not None
    return f".{pattern}." in f".{name}." or fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")


def read_storage(config: object, where: str) -> Storage:
    """Read a `quantization_config`.

    Raises
    ------
    InvalidInput
        If its method, or what it asks of it, is not known here.
    """
    given = Section(config, where)
    method = given.get("quant_method")
    if method is None and (given.flag("load_in_4bit") or given.flag("load_in_8bit")):
        method = "bitsandbytes"
    if not isinstance(method, str) or method not in QUANTISATION:
        known = ", ".join(QUANTISATION)
        raise InvalidInput(f"{where}.quant_method: expected one of {known}, got {describe(method)}; {BY_DTYPE}")
    sizes = Formulas(given, QUANTISATION[method])
    rules = [re.sub("^-:", "re:", str(rule)) for rule in Section(given.get("dynamic") or {}, f"{where}.dynamic").data]
    if not all(rule.startswith("re:") for rule in rules):
        raise InvalidInput(f"{where}.dynamic: expected rules that begin with '-:' alone; {BY_DTYPE}")
    excluded = (given.patterns(field) for field in KEPT)
    return Storage(
        method=method,
        schemes=tuple(_schemes(given, method)),
        kept=tuple(chain(Section({"dynamic": rules}, where).patterns("dynamic"), *excluded)),
        kv_value_bytes=sizes["kv_value_bytes"],
        head=sizes["head"],
        experts_only=sizes["experts_only"],
    )


def read_scheme(section: Section, method: str) -> Scheme:
    """Return how a method stores a matrix, as a section says."""
    sizes = Formulas(section, QUANTISATION[method])
    return Scheme(**{field.name: sizes[field.name] for field in dataclasses.fields(Scheme)})


def _schemes(given: Section, method: str) -> Iterator[tuple[str, Scheme]]:
    """Yield the targets of each group or module with their scheme, or one scheme for all."""
    general = list[tuple[str, Scheme]]()
    if method == "compressed-tensors" or given.given("config_groups"):
        for group in given.sections("config_groups").values():
            if group.given("weights"):
                scheme = read_scheme(group, "compressed-tensors")
                for target in group.patterns("targets") or group.patterns("weights.targets") or ["Linear"]:
                    if target == "Linear":
                        general.append(("*", scheme))
                    else:
                        yield target, scheme
    elif given.get("quant_algo") == "MIXED_PRECISION":
        for name, module in given.sections("quantized_layers").items():
            yield name, read_scheme(module, method)
    else:
        general.append(("*", read_scheme(given, method)))
    yield from general
