"""Hugging Face `config.json` files as cost models: exact counts for dense decoders, and the papers' beside them.

Strict by `model_type`: `specopt.instances.checkpoints.model_types` has the conventions of those that are understood.
Everything else (mixture of experts, latent attention, state-space layers, encoders, quantised weights, unknown types)
is refused by name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from specopt.instances.checkpoints.model_types import MARKS, MODEL_TYPES, WRAPPERS, ModelType, Switch
from specopt.models.arguments import boolean, integer
from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe
from specopt.models.files import unique_keys
from specopt.models.reading import read_bytes

MOST_BYTES = 4 * 2**20
"""Largest file that is read as a config: weights given by mistake are not loaded first."""

DTYPES = {
    "float64": 8,
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "float8": 1,
    "int8": 1,
}
"""Bytes per value of the data types that counts can be given in."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a decoder has beside the matrices of its layers.

    Parameters
    ----------
    qkv_bias, output_bias, mlp_bias
        Biases on the query, key and value projections, on the attention's output, in the feed-forward network.
    query_key_norm
        Whether queries and keys are normed per head.
    norms_per_layer
        Norms of the hidden size in a layer.
    final_norm
        Whether there is a norm behind the last layer.
    values_per_norm
        Values per dimension of a norm: 2 (weight and bias), 1 (weight) or 0.
    layer_norm
        Whether norms also subtract the mean.
    position_rows
        Rows of the table of learned positions; 0 for rotary positions.
    position_offset
        How many of its first rows stand for no position.
    embedding
        Dimension of the embeddings; where it is not the hidden one, two projections lead in and out.
    """

    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    query_key_norm: bool
    norms_per_layer: int
    final_norm: bool
    values_per_norm: int
    layer_norm: bool
    position_rows: int
    position_offset: int
    embedding: int


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A decoder as its config describes it.

    Parameters
    ----------
    name
        The model's name, or the file's.
    model_type
        As in the config.
    exact, paper
        The two cost models of `serving-latency`.
    layout
        Biases, norms and positions: parameters that cost memory, but are not in the cost models.
    dtype
        The data type that the config names, if any; the counts do not depend on it.
    notes
        What a reader should know: defaults taken, parts not counted.
    """

    name: str
    model_type: str
    exact: ExactDecoder
    paper: PaperDecoder
    layout: Layout
    dtype: str | None
    notes: tuple[str, ...]

    @property
    def projected(self) -> bool:
        """Whether embeddings have another dimension than layers: the cost model `exact` cannot say so."""
        return self.layout.embedding != self.exact.hidden

    @property
    def parameters(self) -> int:
        """All parameters: matrices, embeddings (once if tied), biases, norms, learned positions."""
        shape, layout = self.exact, self.layout
        layer = shape.weights_per_layer
        if layout.qkv_bias:
            layer += shape.head_dim * (shape.heads + 2 * shape.kv_heads)
        if layout.output_bias:
            layer += shape.hidden
        if layout.mlp_bias:
            layer += (2 if shape.gated else 1) * shape.ffn + shape.hidden
        if layout.query_key_norm:
            layer += 2 * layout.values_per_norm * shape.head_dim
        layer += layout.norms_per_layer * layout.values_per_norm * shape.hidden
        outside = (1 if shape.tied else 2) * shape.vocabulary * layout.embedding
        outside += layout.position_rows * shape.hidden
        if self.projected:
            outside += 2 * layout.embedding * shape.hidden
        if layout.final_norm:
            outside += layout.values_per_norm * shape.hidden
        return shape.layers * layer + outside

    @property
    def weight_bytes(self) -> int:
        """Bytes of all parameters."""
        return self.parameters * self.exact.bytes_per_value

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the KV cache per token."""
        return self.exact.kv_bytes_per_token


def bytes_per_value(dtype: str) -> int:
    """Return the bytes of a value of this data type.

    Raises
    ------
    InvalidInput
        If the data type is not one of `DTYPES`.

    Examples
    --------
    >>> bytes_per_value("bfloat16")
    2
    """
    if dtype not in DTYPES:
        raise InvalidInput(f"dtype: expected one of {', '.join(DTYPES)}, got {describe(dtype)}")
    return DTYPES[dtype]


def read_model_config(path: str | os.PathLike[str], *, dtype: str | None = None) -> ModelConfig:
    """Read a `config.json`, or the one in a folder.

    Parameters
    ----------
    path
        The file, in UTF-8 with or without a byte-order mark.
    dtype
        One of `DTYPES`: what weights and cache are counted in; two bytes per value by default.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no JSON object, or describes a model whose counts are not known here; the
        message names file and field.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    value = 2 if dtype is None else bytes_per_value(dtype)
    raw = read_bytes(file, MOST_BYTES)
    try:
        data = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file}: expected a JSON document in UTF-8: {error}") from None
    try:
        return parse_model_config(data, name=_file_name(file), value_bytes=value)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from None


def parse_model_config(data: object, *, name: str = "model", value_bytes: int = 2) -> ModelConfig:
    """Build the cost models from a config as JSON-like data.

    Parameters
    ----------
    data
        The content of a `config.json`.
    name
        The model's name, where the config gives none.
    value_bytes
        Bytes of a weight or cached value.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory, or means a model whose counts are not known here.
    """
    config = _Config(data)
    return config.read(name, value_bytes)


class _Config:
    """One config while it is read: the decoder's part, the whole around it, and notes."""

    def __init__(self, data: object) -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput(f"the top level: expected an object, got {describe(data)}")
        self.whole: Mapping[str, Any] = data
        self.part: Mapping[str, Any] = data
        self.where = ""
        self.notes: list[str] = []
        if data.get("text_config") is not None:
            self._enter_text()
        self.model_type, self.type = self._model_type()

    def _enter_text(self) -> None:
        wrapper, part = self.whole.get("model_type"), self.whole["text_config"]
        if not isinstance(part, Mapping):
            raise InvalidInput(f"text_config: expected an object, got {describe(part)}")
        if part.get("text_config") is not None:
            raise InvalidInput("text_config.text_config: expected a decoder, got another config in it")
        if wrapper is not None and wrapper not in (*WRAPPERS, part.get("model_type")):
            known = ", ".join(WRAPPERS)
            raise InvalidInput(f"model_type: expected, around a text_config, one of {known}, got {describe(wrapper)}")
        self.part, self.where = part, "text_config."
        self.notes.append("text_config alone is counted, not what is around it (image encoders and their projectors)")

    def _model_type(self) -> tuple[str, ModelType]:
        found = self.part.get("model_type")
        if found is None:
            raise InvalidInput(f"{self.where}model_type: required field is missing")
        if not isinstance(found, str) or found not in MODEL_TYPES:
            self._refuse_marks()  # a mixture of experts is named as such, also where its type is unknown
            known = ", ".join(MODEL_TYPES)
            raise InvalidInput(f"{self.where}model_type: expected one of {known}, got {describe(found)}")
        return found, MODEL_TYPES[found]

    # ------------------------------------------------------------------------ the whole

    def read(self, name: str, value_bytes: int) -> ModelConfig:
        """Return what the config describes."""
        kind = self.type
        self._refuse_marks()
        self._check_architectures()
        self._check_layer_types()
        self._check_fixed()
        hidden, heads = self.size("hidden_size"), self.size("num_attention_heads")
        layers, ffn, vocabulary = self.size("num_hidden_layers"), self.size(kind.ffn), self.size("vocab_size")
        label = self._name(name)
        kv_heads = self._kv_heads(heads)
        head_dim = self._head_dim(hidden, heads)
        tied = self._tied()
        layout = self._layout(hidden)
        self._note_windows()
        if self.part.get("auto_map") is not None:
            self.notes.append(f"auto_map: code of its own is named there; counted as a {self.model_type}")
        if layout.embedding != hidden:
            self.notes.append(
                f"word_embed_proj_dim: embeddings of {layout.embedding}, not {hidden}, with two projections; they are"
                " in the parameters, but no cost model can say so"
            )
        exact = ExactDecoder(
            layers=layers,
            hidden=hidden,
            ffn=ffn,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            gated=kind.gated,
            vocabulary=vocabulary,
            tied=tied,
            bytes_per_value=value_bytes,
            name=label,
        )
        return ModelConfig(
            name=label,
            model_type=self.model_type,
            exact=exact,
            paper=PaperDecoder(layers=layers, hidden=hidden, ffn=ffn, name=label),
            layout=layout,
            dtype=self._dtype(),
            notes=tuple(self.notes),
        )

    def _layout(self, hidden: int) -> Layout:
        kind = self.type
        before = final = affine = True
        positions, embedding = 0, hidden
        if self.model_type == "opt":
            before = self.flag("do_layer_norm_before", True)
            final = before and not self.flag("_remove_final_layer_norm", False)
            affine = self.flag("layer_norm_elementwise_affine", True)
            embedding = self.size("word_embed_proj_dim", hidden)
        if kind.position_offset is not None:
            positions = self.size("max_position_embeddings") + kind.position_offset
        return Layout(
            qkv_bias=self.switch(kind.qkv_bias),
            output_bias=self.switch(kind.output_bias),
            mlp_bias=self.switch(kind.mlp_bias),
            query_key_norm=kind.query_key_norm,
            norms_per_layer=kind.norms_per_layer,
            final_norm=final,
            values_per_norm=(2 if kind.layer_norm else 1) if affine else 0,
            layer_norm=kind.layer_norm,
            position_rows=positions,
            position_offset=kind.position_offset or 0,
            embedding=embedding,
        )

    def _name(self, fallback: str) -> str:
        given = self.whole.get("_name_or_path")
        is_repository = isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", given, re.ASCII)
        return str(given) if is_repository else fallback

    def _dtype(self) -> str | None:
        for place, where in ((self.part, self.where), (self.whole, "")):
            found = {key: place[key] for key in ("dtype", "torch_dtype") if place.get(key) is not None}
            for key, value in found.items():
                if not isinstance(value, str) or not re.fullmatch(r"[\w.]{1,40}", value, re.ASCII):
                    raise InvalidInput(f"{where}{key}: expected the name of a data type, got {describe(value)}")
            names = {value.removeprefix("torch.") for value in found.values()}
            if len(names) > 1:
                raise InvalidInput(f"{where}dtype: contradicts torch_dtype, {' and '.join(sorted(names))}")
            if names:
                return str(names.pop())
        return None

    # ------------------------------------------------------------------------ what is refused

    def _refuse_marks(self) -> None:
        for place, where in ((self.part, self.where), (self.whole, "")):
            for key, value in place.items():
                if value is None or value is False or value == 0 or value in ([], {}, ""):
                    continue
                for what, patterns in MARKS.items():
                    if any(fnmatchcase(str(key), pattern) for pattern in patterns):
                        shown = key if str(key).isprintable() else describe(key)
                        raise InvalidInput(f"{where}{shown}: {what} are not counted here, got {describe(value)}")

    def _check_architectures(self) -> None:
        found = self.part.get("architectures")
        if found is None:
            return
        expected = self.type.architecture
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise InvalidInput(f"{self.where}architectures: expected a list of names, got {describe(found)}")
        if any(item.lower() != expected.lower() for item in found):
            raise InvalidInput(
                f"{self.where}architectures: expected {expected}, as model_type {self.model_type} has it,"
                f" got {describe(found)}"
            )

    def _check_layer_types(self) -> None:
        found = self.part.get("layer_types")
        if found is None:
            return
        layers = self.size("num_hidden_layers")
        if not isinstance(found, list) or len(found) != layers:
            raise InvalidInput(f"{self.where}layer_types: expected {layers} names, got {describe(found)}")
        for index, item in enumerate(found):
            if item not in ("full_attention", "sliding_attention"):
                raise InvalidInput(
                    f"{self.where}layer_types[{index}]: expected full_attention or sliding_attention,"
                    f" got {describe(item)}"
                )

    def _check_fixed(self) -> None:
        """Refuse a config that asks for what its type does not have: some readers would follow it, others not."""
        kind = self.type
        fixed = {
            "attention_bias": kind.qkv_bias,
            "qkv_bias": kind.qkv_bias,
            "mlp_bias": kind.mlp_bias,
            "use_qk_norm": kind.query_key_norm,
            "qk_norm": kind.query_key_norm,
            "qk_layernorm": kind.query_key_norm,
        }
        for name, expected in fixed.items():
            if isinstance(expected, bool) and self.flag(name, expected) != expected:
                word = str(expected).lower()
                raise InvalidInput(
                    f"{self.where}{name}: expected {word}, as {self.model_type} has it, got {str(not expected).lower()}"
                )

    # ------------------------------------------------------------------------ fields

    def get(self, name: str) -> Any:
        """Return a field of the decoder; None where it is absent, null or left to the class."""
        value = self.part.get(name)
        around = self.whole.get(name)
        if value is None:
            return None
        if around is not None and around != value:
            raise InvalidInput(
                f"{self.where}{name}: {describe(value)} contradicts {describe(around)} around text_config"
            )
        return value

    def size(self, name: str, default: int | None = None) -> int:
        """Return a positive integer."""
        value = self.get(name)
        if value is None and name in self.type.defaults:
            default = self.type.defaults[name]
            self.notes.append(f"{name}: absent; {default}, the default of {self.model_type}")
        if value is None:
            if default is None:
                raise InvalidInput(f"{self.where}{name}: required field is missing")
            return default
        return integer(f"{self.where}{name}", value, 1, MAX_TOKENS)

    def flag(self, name: str, default: bool) -> bool:
        """Return a yes or no."""
        value = self.get(name)
        return default if value is None else boolean(f"{self.where}{name}", value)

    def switch(self, switch: bool | Switch) -> bool:
        """Return a yes or no that the type fixes, or leaves to the config."""
        if isinstance(switch, Switch):
            return self.flag(switch.name, switch.default)
        return switch

    def _kv_heads(self, heads: int) -> int:
        name, rule = "num_key_value_heads", self.type.kv_heads
        if rule == "given" and name not in self.type.defaults and name not in self.part:
            raise InvalidInput(
                f"{self.where}{name}: required field is missing (the default of {self.model_type} is not the number of"
                " heads; null means that it is)"
            )
        means_heads = self.part.get(name) is None and (rule != "given" or name in self.part)
        found = heads if means_heads else self.size(name)
        if rule == "none" and found != heads:
            raise InvalidInput(f"{self.where}{name}: {self.model_type} has no grouped heads; got {found} for {heads}")
        if found > heads or heads % found:
            raise InvalidInput(f"{self.where}{name}: expected a divisor of num_attention_heads = {heads}, got {found}")
        return found

    def _head_dim(self, hidden: int, heads: int) -> int:
        rule = self.type.head_dim
        if self.get("head_dim") is not None or rule == "given":
            found = self.size("head_dim")
            if rule == "none" and found * heads != hidden:
                raise InvalidInput(
                    f"{self.where}head_dim: {self.model_type} has hidden_size / num_attention_heads ="
                    f" {hidden} / {heads}, got {found}"
                )
            return found
        if hidden % heads:
            raise InvalidInput(
                f"{self.where}num_attention_heads: expected a divisor of hidden_size = {hidden} where head_dim is"
                f" absent, got {heads}"
            )
        return hidden // heads

    def _tied(self) -> bool:
        name = "tie_word_embeddings"
        if self.get(name) is None and self.whole.get(name) is not None:
            return boolean(name, self.whole[name])  # the whole's word counts for the decoder in it
        return self.flag(name, self.type.tied)

    def _note_windows(self) -> None:
        window = self.get("sliding_window")
        if window is None or self.get("use_sliding_window") is False:
            return
        self.notes.append(
            f"sliding_window: {describe(window)}; not modelled: every layer is counted with a cache of the whole length"
        )


def _file_name(file: Path) -> str:
    """Return the model's name as the file system tells it: the file's, or its folder's if it is a plain config.json."""
    is_plain = file.name == "config.json"
    name = file.absolute().parent.name if is_plain else file.name.removesuffix(".json").removesuffix(".config")
    return name.encode("utf-8", "replace").decode() or "model"  # names of files need not be UTF-8
