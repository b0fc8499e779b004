"""The bytes that tensors take as they are stored, plain or as `quantization_config` says, method by method.

Counted are the packed values and what belongs to them: scales per block of values, zero points, the order of columns.
Routers, norms, biases, convolutions and tables of embeddings stay plain in every method. So does the output matrix,
unless the config quantises it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from specopt.instances.checkpoints.section import Section
from specopt.instances.checkpoints.tensors import Weight
from specopt.models.arguments import integer, one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

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


EXPONENTS = Scheme(bits=4, rows=1, columns=32, scale_bits=8)
"""Blocks of 32 values of 4 bits, with an exponent of 8 (MXFP4)."""


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
    if not isinstance(method, str) or method not in METHODS:
        known = ", ".join(METHODS)
        raise InvalidInput(f"{where}.quant_method: expected one of {known}, got {describe(method)}; {BY_DTYPE}")
    found = METHODS[method](given)
    kept = [name for field in KEPT for name in _patterns(given, field)]
    return replace(
        found, method=method, kept=(*found.kept, *kept), kv_value_bytes=1 if _has_byte_cache(given) else 2
    )


def _has_byte_cache(given: Section) -> bool:
    """Return whether the KV cache is kept in 8 bits."""
    if given.given("kv_cache_scheme"):
        scheme = given.section("kv_cache_scheme")
        return one_of(scheme.path("num_bits"), scheme.get("num_bits"), (8,)) == 8
    algorithm = given.get("kv_cache_quant_algo")
    return algorithm is not None and one_of(given.path("kv_cache_quant_algo"), algorithm, ("FP8",)) == "FP8"


def _patterns(given: Section, field: str) -> list[str]:
    """Return the names, or regular expressions of names, that a field lists."""
    where = given.path(field)
    found = sequence(where, given.get(field) or [])
    for item in found:
        if not isinstance(item, str):
            raise InvalidInput(f"{where}: expected names, got {describe(item)}")
        _check_expression(where, item)
    return found


def _check_expression(where: str, pattern: str) -> None:
    if pattern.startswith("re:"):
        try:
            re.compile(pattern[3:])
        except re.error as error:
            raise InvalidInput(f"{where}: expected regular expressions ({error})") from None


def _group(given: Section, field: str) -> int:
    """Return how many columns share a scale; 0, in configs -1, if all of them do."""
    return 0 if given.get(field) == -1 else given.size(field)


def _block(given: Section, field: str) -> tuple[int, int]:
    """Return the rows and columns of a block."""
    where = given.path(field)
    rows, columns = (integer(where, side, 1, MAX_TOKENS) for side in sequence(where, given.get(field), 2))
    return rows, columns


def _everywhere(scheme: Scheme, **more: Any) -> Storage:
    return Storage(schemes=(("*", scheme),), **more)


def _fp8(given: Section) -> Storage:
    """Blocks that share a scale, in single precision or as an exponent, or one for the matrix."""
    one_of(given.path("store_dtype"), given.get("store_dtype"), (None, "fp8"))
    rows, columns = _block(given, "weight_block_size") if given.given("weight_block_size") else (0, 0)
    static = 32 if given.get("activation_scheme") == "static" else 0
    return _everywhere(Scheme(bits=8, rows=rows, columns=columns, scale_bits=32, matrix_bits=static))


def _gptq(given: Section) -> Storage:
    """Groups of columns with scale and zero point; the group of each column is stored."""
    bits = one_of(given.path("bits"), given.get("bits"), (2, 3, 4, 8))
    dynamic = given.get("dynamic") or {}
    if not isinstance(dynamic, Mapping) or not all(str(rule).startswith("-:") for rule in dynamic):
        found = describe(dynamic)
        raise InvalidInput(
            f"{given.path('dynamic')}: settings of single modules are not counted here, got {found}; {BY_DTYPE}"
        )
    kept = tuple(f"re:{rule[2:]}" for rule in dynamic)
    for pattern in kept:
        _check_expression(given.path("dynamic"), pattern)
    columns = _group(given, "group_size")
    scheme = Scheme(bits=bits, rows=1, columns=columns, scale_bits=16 + bits, column_bits=32)
    return _everywhere(scheme, kept=kept, head=given.flag("lm_head"))


def _awq(given: Section) -> Storage:
    bits = one_of(given.path("bits"), given.get("bits|w_bit"), (4, 8))
    zero = bits if given.flag("zero_point", True) else 0
    return _everywhere(Scheme(bits=bits, rows=1, columns=_group(given, "group_size|q_group_size"), scale_bits=16 + zero))


def _bitsandbytes(given: Section) -> Storage:
    if given.flag("load_in_8bit"):
        return _everywhere(Scheme(bits=8, rows=1, scale_bits=32))
    if not given.flag("load_in_4bit"):
        raise InvalidInput(f"{given.where[:-1]}: expected load_in_4bit or load_in_8bit")
    twice = given.flag("bnb_4bit_use_double_quant")  # scales of 8 bits, and one of 32 for 256 of them
    return _everywhere(Scheme(bits=4, rows=1, columns=64, scale_bits=8 + 32 / 256 if twice else 32))


def _grouped(given: Section) -> Storage:
    """Targets, and how weights and activations of each are quantised (compressed-tensors, and ModelOpt after it)."""
    if given.get("sparsity_config"):
        sparsity = given.section("sparsity_config")
        if sparsity.get("format") not in (None, "dense"):
            found = describe(sparsity.get("format"))
            raise InvalidInput(
                f"{sparsity.path('format')}: sparse weights are not counted here, got {found}; {BY_DTYPE}"
            )
    groups, schemes = given.section("config_groups"), list[tuple[str, Scheme]]()
    for name in groups.data:
        group = Section(groups.data[name], groups.path(str(name)))
        if group.given("weights"):
            weights = group.section("weights")
            targets = _patterns(group, "targets") or _patterns(weights, "targets") or ["Linear"]
            scheme = _weights_scheme(weights, group)
            schemes += [("*" if target == "Linear" else target, scheme) for target in targets]
    schemes.sort(key=lambda item: item[0] == "*")  # the general case last
    return Storage(schemes=tuple(schemes), head=True)


def _weights_scheme(weights: Section, group: Section) -> Scheme:
    bits = one_of(weights.path("num_bits"), weights.get("num_bits"), (2, 3, 4, 5, 6, 7, 8))
    size = _group(weights, "group_size") if weights.given("group_size") else 0
    strategy = one_of(
        weights.path("strategy"),
        weights.get("strategy") or ("group" if size else "tensor"),
        ("tensor", "channel", "group", "tensor_group", "block"),
    )
    tiny = bits == 4 and weights.get("type") == "float"  # NVFP4 and MXFP4: scales of 8 bits
    scale = (8 if tiny else 16) + (0 if weights.flag("symmetric", True) else bits)
    activations = group.get("input_activations")
    static = 32 if isinstance(activations, Mapping) and activations.get("dynamic") is not True else 0
    if strategy == "block":
        rows, columns = _block(weights, "block_structure")
        return Scheme(bits=bits, rows=rows, columns=columns, scale_bits=scale, matrix_bits=static)
    return Scheme(
        bits=bits,
        rows=0 if strategy == "tensor" else 1,
        columns=size,
        scale_bits=scale,
        column_bits=32 if weights.get("actorder") == "group" else 0,
        matrix_bits=static + (32 if tiny and strategy != "channel" and size == 16 else 0),
    )


def _modelopt(given: Section) -> Storage:
    if given.given("config_groups"):
        return _grouped(given)
    if given.get("quant_algo") != "MIXED_PRECISION":
        return _everywhere(_modelopt_scheme(given), head=True)
    layers = given.section("quantized_layers")
    schemes = [(str(name), _modelopt_scheme(Section(item, layers.path(str(name))))) for name, item in layers.data.items()]
    return Storage(schemes=tuple(schemes), head=True)


def _modelopt_scheme(given: Section) -> Scheme:
    algorithm = one_of(given.path("quant_algo"), given.get("quant_algo"), ("FP8", "NVFP4", "W4A16_NVFP4"))
    if algorithm == "FP8":
        return Scheme(bits=8, scale_bits=32, matrix_bits=32)
    static = 32 if algorithm == "NVFP4" else 0
    return Scheme(bits=4, rows=1, columns=given.size("group_size", 16), scale_bits=8, matrix_bits=32 + static)


METHODS: Mapping[str, Callable[[Section], Storage]] = MappingProxyType(
    {
        "fp8": _fp8,
        "fbgemm_fp8": lambda _: _everywhere(Scheme(bits=8, rows=1, scale_bits=32)),
        "gptq": _gptq,
        "awq": _awq,
        "mxfp4": lambda _: _everywhere(EXPONENTS, experts_only=True),
        "compressed-tensors": _grouped,
        "bitsandbytes": _bitsandbytes,
        "modelopt": _modelopt,
        "modelopt_fp4": _modelopt,
    }
)
"""How the methods of `quantization_config` store a matrix."""
