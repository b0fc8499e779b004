"""Storage sizes of tensors that are either plain or quantised according to `quantization_config`.

The size includes the packed values and their metadata: scales per block of values, zero points,
and the order of columns. No method quantises routers, norms, biases, convolutions or embedding
tables. The output matrix is quantised only if the config says so.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.fields import QUANTISATION, TABLE, Formulas, Section, Weight
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

QUANTISED = "quantization_config|compression_config"

BY_DTYPE = "count its bytes at a fixed size with --dtype instead"


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """The quantisation of a matrix. The matrix is divided into blocks, and the values in a block
    share a scale.

    Parameters
    ----------
    bits
        Number of bits per value.
    rows
        Number of rows in a block; 0 means all rows.
    columns
        Number of columns in a block; 0 means all columns.
    scale_bits
        Number of bits for the scale and the zero point of a block.
    column_bits
        Number of bits stored once per column.
    matrix_bits
        Number of bits stored once per matrix.
    """

    bits: int
    rows: int = 0
    columns: int = 0
    scale_bits: float = 0
    column_bits: int = 0
    matrix_bits: int = 0

    def bytes(self, rows: int, columns: int) -> int:
        """Return the size of a quantised matrix, in bytes."""
        blocks = -(-rows // (self.rows or rows)) * -(-columns // (self.columns or columns))
        bits = rows * columns * self.bits + columns * self.column_bits + self.matrix_bits
        return -(-(bits + round(blocks * self.scale_bits)) // 8)


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The storage formats of weights and cached values.

    Parameters
    ----------
    value_bytes
        Number of bytes per plain weight.
    kv_value_bytes
        Number of bytes per cached value.
    method
        Name of the quantisation method; None if nothing is quantised.
    schemes
        Pairs of a name pattern and a quantisation scheme. The first pattern that matches a tensor's
        name determines the scheme. ``*`` matches all names, and the scheme None leaves a tensor
        plain.
    roles
        Roles of weights that may be quantised; see `Weight`.
    """

    value_bytes: int = 2
    kv_value_bytes: int = 2
    method: str | None = None
    schemes: tuple[tuple[str, Scheme | None], ...] = ()
    roles: tuple[str, ...] = ()

    def bytes(self, weight: Weight) -> int:
        """Return the size of all copies of a tensor, in bytes."""
        schemes = self.schemes if weight.role in self.roles and len(weight.shape) == 2 else ()
        scheme = next((scheme for pattern, scheme in schemes if _names(pattern, weight.name)), None)
        if scheme is None:
            return weight.values * self.value_bytes
        return weight.copies * scheme.bytes(*weight.shape)

    def unmatched(self, weights: Iterable[Weight]) -> list[str]:
        """Return the patterns that match neither a weight nor the output matrix."""
        names = ["lm_head", *(weight.name for weight in weights)]
        return [
            pattern
            for pattern, _ in self.schemes
            if not any(_names(pattern, name) for name in names)
        ]


def _names(pattern: str, name: str) -> bool:
    """Return whether a pattern of a quantisation config matches the name of a module.

    A pattern is ``re:`` followed by a regular expression, a string with wildcards, or a part of the
    module's path.
    """
    pattern = pattern.replace("language_model.", "")
    if pattern.startswith("re:"):
        return re.match(pattern[3:], name) is not None
    return (
        f".{pattern}." in f".{name}."
        or fnmatchcase(name, pattern)
        or fnmatchcase(name, f"{pattern}.*")
    )


def read_storage(config: Config, value_bytes: int | None) -> Storage:
    """Return the storage formats for the given number of bytes per value, or those specified by the
    config if the number is None.

    Raises
    ------
    InvalidInput
        If the method or one of its options is unknown.
    """
    if value_bytes is not None:
        return Storage(value_bytes=value_bytes, kv_value_bytes=value_bytes)
    found = config.get(QUANTISED) or config.whole.get(QUANTISED)
    given = Section(found or {}, "quantization_config")
    method = given.get("quant_method")
    if found and str(method) not in QUANTISATION:
        known = ", ".join(QUANTISATION)
        raise InvalidInput(
            f"{given.where}quant_method: expected one of {known}, got {describe(method)};"
            f" {BY_DTYPE}"
        )
    rules = [str(rule) for rule in Section(given.get("dynamic") or {}, given.path("dynamic")).data]
    if not all(rule.startswith("-:") for rule in rules):
        raise InvalidInput(
            f"{given.where}dynamic: expected rules that begin with '-:' alone; {BY_DTYPE}"
        )
    given.data = {**given.data, "dynamic": [f"re:{rule[2:]}" for rule in rules]}
    schemes: list[tuple[str, Scheme | None]] = [
        (name, None) for field in TABLE["plain"]["fields"] for name in given.patterns(field)
    ]
    if (
        config.choice(
            "expert_dtype", ("fp4", "fp8"), config.type["expert_dtype"] if found else "fp8"
        )
        == "fp4"
    ):
        schemes.append(("*.experts.*", read_scheme(config, "mxfp4")))
        method = method or "mxfp4"
    if found:
        schemes += _schemes(given, method)
    if not method:
        return Storage()
    sizes = Formulas(given, QUANTISATION[method])
    size, roles = sizes["kv_value_bytes"], sizes["roles"]
    return Storage(method=method, schemes=tuple(schemes), kv_value_bytes=size, roles=roles)


def read_scheme(section: Section, method: str) -> Scheme:
    """Return the scheme by which a quantisation method, with the options in a section, stores a
    matrix.
    """
    sizes = Formulas(section, QUANTISATION[method])
    return Scheme(**{field.name: sizes[field.name] for field in dataclasses.fields(Scheme)})


def _schemes(given: Section, method: str) -> list[tuple[str, Scheme]]:
    """Return pairs of a target pattern and a scheme.

    The pairs cover the targets of all groups or modules, and general patterns come last. If the
    config has neither groups nor modules, the result is one scheme for all tensors.
    """
    if given.get("quant_algo") == "MIXED_PRECISION":
        return [
            (name, read_scheme(module, method))
            for name, module in given.sections("quantized_layers").items()
        ]
    if method != "compressed-tensors" and not given.given("config_groups"):
        return [("*", read_scheme(given, method))]
    found = [
        ("*" if target == "Linear" else target, read_scheme(group, "compressed-tensors"))
        for group in given.sections("config_groups").values()
        if group.given("weights")
        for target in group.patterns("targets") or group.patterns("weights.targets") or ["Linear"]
    ]
    return sorted(found, key=lambda item: item[0] == "*")
