"""How `quantization_config` says that weights are stored, method by method."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from specopt.instances.checkpoints.storage import EXPONENTS, Scheme, Storage
from specopt.models.arguments import boolean, integer, one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

BY_DTYPE = "count its bytes at a fixed size with --dtype instead"


def read_storage(config: object, where: str) -> Storage:
    """Read a `quantization_config`.

    Raises
    ------
    InvalidInput
        If its method, or what it asks of it, is not known here.
    """
    if not isinstance(config, Mapping):
        raise InvalidInput(f"{where}: expected an object, got {describe(config)}")
    given = _Given(config, where)
    method = given.get("quant_method")
    if method is None and (given.flag("load_in_4bit") or given.flag("load_in_8bit")):
        method = "bitsandbytes"
    if not isinstance(method, str) or method not in METHODS:
        known = ", ".join(METHODS)
        raise InvalidInput(f"{where}.quant_method: expected one of {known}, got {describe(method)}; {BY_DTYPE}")
    found = METHODS[method](given)
    kept = tuple(given.names("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules",
                             "llm_int8_skip_modules"))  # fmt: skip
    return Storage(
        kv_value_bytes=1 if given.has_byte_cache() else 2,
        method=method,
        schemes=found.schemes,
        kept=(*found.kept, *kept),
        head=found.head,
        experts_only=found.experts_only,
    )


class _Given:
    """A quantisation config, field by field."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self.config, self.where = config, where

    def get(self, *names: str) -> Any:
        """Return the first of these fields that is there."""
        return next((self.config[name] for name in names if self.config.get(name) is not None), None)

    def size(self, *names: str, default: int | None = None) -> int:
        """Return the first of these fields, a positive integer."""
        value = self.get(*names)
        if value is None and default is not None:
            return default
        return integer(f"{self.where}.{names[0]}", value, 1, MAX_TOKENS)

    def group(self, *names: str) -> int:
        """Return how many columns share a scale; 0, in configs -1, if all of them do."""
        value = self.get(*names)
        return 0 if value == -1 else integer(f"{self.where}.{names[0]}", value, 1, MAX_TOKENS)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a field that is true or false."""
        value = self.get(name)
        return default if value is None else boolean(f"{self.where}.{name}", value)

    def names(self, *names: str) -> list[str]:
        """Return all names, or regular expressions of names, that these fields list."""
        found: list[str] = []
        for name in names:
            for item in sequence(f"{self.where}.{name}", self.config.get(name) or []):
                if not isinstance(item, str):
                    raise InvalidInput(f"{self.where}.{name}: expected names, got {describe(item)}")
                if item.startswith("re:"):
                    try:
                        re.compile(item[3:])
                    except re.error as error:
                        raise InvalidInput(f"{self.where}.{name}: expected regular expressions ({error})") from None
                found.append(item)
        return found

    def part(self, name: str) -> _Given:
        """Return a field that is an object."""
        value = self.get(name)
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{self.where}.{name}: expected an object, got {describe(value)}")
        return _Given(value, f"{self.where}.{name}")

    def has_byte_cache(self) -> bool:
        """Return whether the KV cache is kept in 8 bits."""
        if self.get("kv_cache_scheme") is not None:
            bits = self.part("kv_cache_scheme").get("num_bits")
            return one_of(f"{self.where}.kv_cache_scheme.num_bits", bits, (8,)) == 8
        algorithm = self.get("kv_cache_quant_algo")
        return algorithm is not None and one_of(f"{self.where}.kv_cache_quant_algo", algorithm, ("FP8",)) == "FP8"

    def refuse(self, name: str, what: str) -> InvalidInput:
        """Return the error for a field whose value is not known."""
        return InvalidInput(f"{self.where}.{name}: {what} not counted here, got {describe(self.get(name))}; {BY_DTYPE}")


@dataclass(frozen=True, kw_only=True)
class _Found:
    schemes: tuple[tuple[str, Scheme], ...]
    kept: tuple[str, ...] = ()
    head: bool = False
    experts_only: bool = False


def _everywhere(scheme: Scheme, **more: Any) -> _Found:
    return _Found(schemes=(("*", scheme),), **more)


def _fp8(given: _Given) -> _Found:
    """Blocks that share a scale, in single precision or as an exponent, or one for the matrix."""
    if given.get("store_dtype") not in (None, "fp8"):
        raise given.refuse("store_dtype", "further forms of weights are")
    block = given.get("weight_block_size")
    static = 32 if given.get("activation_scheme") == "static" else 0
    if block is None:
        return _everywhere(Scheme(bits=8, scale_bits=32, matrix_bits=static))
    where = f"{given.where}.weight_block_size"
    rows, columns = (integer(where, size, 1, MAX_TOKENS) for size in sequence(where, block, 2))
    return _everywhere(Scheme(bits=8, rows=rows, columns=columns, scale_bits=32, matrix_bits=static))


def _gptq(given: _Given) -> _Found:
    """Groups of columns with scale and zero point; the group of each column is stored."""
    bits = one_of(f"{given.where}.bits", given.get("bits"), (2, 3, 4, 8))
    dynamic = given.get("dynamic") or {}
    if not isinstance(dynamic, Mapping) or not all(str(rule).startswith("-:") for rule in dynamic):
        raise given.refuse("dynamic", "settings of single modules are")
    kept = _Given({"dynamic": [f"re:{rule[2:]}" for rule in dynamic]}, given.where).names("dynamic")
    scheme = Scheme(bits=bits, rows=1, columns=given.group("group_size"), scale_bits=16 + bits, column_bits=32)
    return _everywhere(scheme, kept=tuple(kept), head=given.flag("lm_head"))


def _awq(given: _Given) -> _Found:
    bits = one_of(f"{given.where}.bits", given.get("bits", "w_bit"), (4, 8))
    zero = bits if given.flag("zero_point", True) else 0
    return _everywhere(
        Scheme(bits=bits, rows=1, columns=given.group("group_size", "q_group_size"), scale_bits=16 + zero)
    )


def _bitsandbytes(given: _Given) -> _Found:
    if given.flag("load_in_8bit"):
        return _everywhere(Scheme(bits=8, rows=1, scale_bits=32))
    if not given.flag("load_in_4bit"):
        raise InvalidInput(f"{given.where}: expected load_in_4bit or load_in_8bit")
    twice = given.flag("bnb_4bit_use_double_quant")  # scales of 8 bits, and one of 32 for 256 of them
    return _everywhere(Scheme(bits=4, rows=1, columns=64, scale_bits=8 + 32 / 256 if twice else 32))


def _grouped(given: _Given) -> _Found:
    """Targets, and how weights and activations of each are quantised (compressed-tensors, and ModelOpt after it)."""
    if given.get("sparsity_config"):
        sparsity = given.part("sparsity_config")
        if sparsity.get("format") not in (None, "dense"):
            raise sparsity.refuse("format", "sparse weights are")
    groups, schemes = given.part("config_groups"), []
    for name in groups.config:
        group = groups.part(str(name))
        if group.get("weights") is None:
            continue
        weights = group.part("weights")
        targets = group.names("targets") or weights.names("targets") or ["Linear"]
        scheme = _weights_scheme(weights, group)
        schemes += [("*" if target == "Linear" else target, scheme) for target in targets]
    schemes.sort(key=lambda item: item[0] == "*")  # the general case last
    return _Found(schemes=tuple(schemes), head=True)


def _weights_scheme(weights: _Given, group: _Given) -> Scheme:
    bits = one_of(f"{weights.where}.num_bits", weights.get("num_bits"), (2, 3, 4, 5, 6, 7, 8))
    size = weights.group("group_size") if weights.get("group_size") is not None else 0
    strategy = one_of(
        f"{weights.where}.strategy",
        weights.get("strategy") or ("group" if size else "tensor"),
        ("tensor", "channel", "group", "tensor_group", "block"),
    )
    tiny = bits == 4 and weights.get("type") == "float"  # NVFP4 and MXFP4: scales of 8 bits
    scale = 8 if tiny else 16
    if not weights.flag("symmetric", True):
        scale += bits
    activations = group.get("input_activations")
    static = 32 if isinstance(activations, Mapping) and activations.get("dynamic") is not True else 0
    if strategy == "block":
        where = f"{weights.where}.block_structure"
        rows, columns = (
            integer(where, side, 1, MAX_TOKENS) for side in sequence(where, weights.get("block_structure"), 2)
        )
        return Scheme(bits=bits, rows=rows, columns=columns, scale_bits=scale, matrix_bits=static)
    return Scheme(
        bits=bits,
        rows=0 if strategy == "tensor" else 1,
        columns=size,
        scale_bits=scale,
        column_bits=32 if weights.get("actorder") == "group" else 0,
        matrix_bits=static + (32 if tiny and strategy != "channel" and size == 16 else 0),
    )


def _modelopt(given: _Given) -> _Found:
    if given.get("config_groups") is not None:
        return _grouped(given)
    if given.get("quant_algo") != "MIXED_PRECISION":
        return _everywhere(_modelopt_scheme(given), head=True)
    layers = given.part("quantized_layers")
    schemes = tuple((str(name), _modelopt_scheme(layers.part(str(name)))) for name in layers.config)
    return _Found(schemes=schemes, head=True)


def _modelopt_scheme(given: _Given) -> Scheme:
    algorithm = one_of(f"{given.where}.quant_algo", given.get("quant_algo"), ("FP8", "NVFP4", "W4A16_NVFP4"))
    if algorithm == "FP8":
        return Scheme(bits=8, scale_bits=32, matrix_bits=32)
    static = 32 if algorithm == "NVFP4" else 0
    columns = given.size("group_size", default=16)
    return Scheme(bits=4, rows=1, columns=columns, scale_bits=8, matrix_bits=32 + static)


METHODS = MappingProxyType(
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
