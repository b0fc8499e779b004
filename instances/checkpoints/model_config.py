"""Reader for Hugging Face `config.json` files, with exact parameter counts and with cost models for
dense decoders.

Decoders and draft heads are supported. `fields.toml` contains the supported model types; the
parameters of other types are counted by `transformers` if that package is installed. Anything else
(such as encoders and unknown quantisations) is rejected with a message that names the unsupported
field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Any

from specopt.instances.checkpoints.config import (
    BY_HAND,
    HEADS,
    MODEL_TYPES,
    TABLE,
    VISION,
    Config,
    Formulas,
    Section,
    Weight,
)
from specopt.instances.checkpoints.parts import (
    Part,
    head_kind,
    read_decoder,
    read_head,
    read_layers,
    read_prediction_head,
)
from specopt.instances.checkpoints.quantisation import Storage, read_storage
from specopt.instances.reading.json_documents import json_document
from specopt.models.arguments import one_of, sequence
from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import describe, printable
from specopt.models.reading import StrPath

DTYPES: dict[str, int] = TABLE["bytes"]
"""Number of bytes per value of the data types that a caller may specify."""


MAX_BYTES = 4 * 2**20
"""Maximum size of a config, in bytes. Larger files are rejected, because they may be weights."""

QUANTISED = "quantization_config|compression_config"
"""Alternative names of the field that describes the quantisation."""

BESIDE = "hf_quant_config.json"
"""Name of ModelOpt's file next to `config.json`, which describes the quantisation."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Part):
    """A decoder or a draft head, as described by its config.

    Parameters
    ----------
    name
        Name of the model, or of the file.
    model_type
        Model type in the config.
    heads
        Draft heads in the config of a decoder; the counts do not include them.
    vision_parameters
        Number of parameters of the image encoder, which the counts do not include; None if there
        is no image encoder or its type is unknown.
    dtype
        Data type in the config, or None; the counts do not depend on the data type.
    notes
        Notes that are shown to the user, for example about defaults and parts that are not counted.
    """

    name: str
    model_type: str
    heads: tuple[Part, ...] = ()
    vision_parameters: int | None = None
    dtype: str | None
    notes: tuple[str, ...]

    @cached_property
    def dense(self) -> ExactDecoder | None:
        """Exact cost model of a decoder whose layers are all equal and dense; None for other
        models.
        """
        shapes = [] if self.kind else [block["exact"] for block in self.blocks]
        if not any(shapes) or shapes[1:] != shapes[:-1]:
            return None
        size = self.storage.value_bytes
        return ExactDecoder(layers=self.layers, bytes_per_value=size, name=self.name, **shapes[0])

    @property
    def exact(self) -> ExactDecoder:
        """Exact cost model, which exists only for dense decoders."""
        if self.dense is None:
            raise Unsupported(
                f"{self.name}: operations can be counted for dense decoders only; count tokens"
                " instead"
            )
        return self.dense

    @property
    def paper(self) -> PaperDecoder:
        """The papers' cost model, which exists only for dense decoders."""
        return PaperDecoder(
            layers=self.layers, hidden=self.exact.hidden, ffn=self.exact.ffn, name=self.name
        )

    @property
    def layout(self) -> Mapping[str, Any]:
        """Properties of a dense decoder that cost models do not contain.

        The keys are the names in `fields.toml`:

        - `qkv_bias`, `output_bias`, `mlp_bias`: whether there are biases on the query, key and
          value projections, on the output of the attention, and in the feed-forward network.
        - `query_key_norm`: whether queries and keys are normalised per head.
        - `norms_per_layer`: number of norms of the hidden size in a layer.
        - `final_norm`: whether a norm follows the last layer.
        - `values_per_norm`: number of values per dimension of a norm, namely 2 (weight and bias),
          1 (weight) or 0.
        - `layer_norm`: whether norms also subtract the mean.
        - `position_rows`: number of rows in the table of learned positions; 0 for rotary positions.
        - `position_offset`: number of rows at the start of that table that represent no position.
        - `embedding`: dimension of the embeddings. If it differs from the hidden dimension, two
          projections convert between them.
        """
        return self.blocks[0]

    @property
    def projected(self) -> bool:
        """Whether embeddings and layers have different dimensions.

        The cost model `exact` cannot represent this difference.
        """
        return self.dense is not None and self.layout["embedding"] != self.dense.hidden


def read_model_config(path: StrPath, *, dtype: str | None = None) -> ModelConfig:
    """Read a `config.json`, given the path of the file or of its folder.

    Parameters
    ----------
    path
        Path of the file, in UTF-8 with or without a byte-order mark, or path of its folder.
    dtype
        Data type of weights and cache, one of `DTYPES`. By default, values have two bytes, or the
        sizes that follow from the config's quantisation.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is not a JSON object, or describes a model that cannot be
        counted. The message names the file and the field.
    """
    file = Path(path)
    if file.is_dir():
        file /= "config.json"
    is_plain = file.name == "config.json"
    stem = file.name.removesuffix(".json").removesuffix(".config")
    name = file.absolute().parent.name if is_plain else stem
    size = None if dtype is None else DTYPES[one_of("dtype", dtype, DTYPES)]
    data = json_document(file, MAX_BYTES)
    beside = file.with_name(BESIDE)
    more = (
        json_document(beside, MAX_BYTES) if is_plain and size is None and beside.exists() else None
    )
    try:
        return parse_model_config(data, name=printable(name), value_bytes=size, beside=more)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from None


def parse_model_config(
    data: object, *, name: str = "", value_bytes: int | None = None, beside: object = None
) -> ModelConfig:
    """Count the parameters of a model whose config is given as JSON-like data, and build the cost
    models.

    Parameters
    ----------
    data
        JSON data of a `config.json`.
    name
        Name of the model if the config does not contain one; "model" if it is empty.
    value_bytes
        Number of bytes per weight and per cached value. None means 2, or the sizes that follow
        from the config's quantisation.
    beside
        JSON data of ModelOpt's file next to the config, `hf_quant_config.json`; None if there is no
        such file. Its quantisation is used if the config does not specify one. Otherwise, a note
        reports if the sizes differ. It is ignored if `value_bytes` is given.

    Raises
    ------
    InvalidInput
        If a field is missing or contradictory, or if the model cannot be counted.
    """
    config = Config(data)
    given = str(config.whole.get("_name_or_path"))
    is_repository = re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", given, re.ASCII)
    dtype = str(config.get("dtype|torch_dtype", ""))
    if not re.fullmatch(r"((torch\.)?[a-z]\w{0,40})?", dtype, re.ASCII):
        raise InvalidInput(f"torch_dtype: expected the name of a data type, got {describe(dtype)}")
    storage = other = Storage(value_bytes=value_bytes or 2, kv_value_bytes=value_bytes or 2)
    try:
        if value_bytes is None:
            quantised = config.get(QUANTISED) or config.whole.get(QUANTISED) or {}
            storage = other = read_storage(config, Section(quantised, "quantization_config"))
            if beside is not None:
                own = Section(beside, BESIDE).inside("quantization")
                own.data = {"quant_method": "modelopt", **own.data}
                other = read_storage(config, own)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; count bytes of a fixed size with --dtype instead") from None
    if other is not storage and storage.method is None:
        storage = other
        config.note(f"{BESIDE}: weights and cache are counted as this file specifies")
    kind = head_kind(config)
    classes = config.type["architecture"]
    if not classes:
        part = _built(config, storage)
    else:
        path = config.path("architectures")
        known = [*classes, *(name for head in HEADS.values() for name in head["classes"] if kind)]
        for item in sequence(path, config.data.get("architectures") or []):
            one_of(path, item, known)
        if config.given("auto_map"):
            config.note(
                f"auto_map: despite its own code, the model is counted as a {config.model_type}"
            )
        part = read_head(config, kind, storage) if kind else read_decoder(config, storage)
    is_decoder = classes and not kind
    found = ModelConfig(
        **vars(part),
        name=given if is_repository else name or "model",
        model_type=config.model_type,
        heads=read_prediction_head(config, part) if is_decoder else (),
        vision_parameters=_vision_parameters(config) if is_decoder else None,
        dtype=dtype.removeprefix("torch.") or None,
        notes=(),
    )
    if is_decoder:
        _add_notes(config, found)
    if other is not storage:
        theirs = replace(part, storage=other)
        is_close = isclose(
            theirs.weight_bytes, part.weight_bytes, rel_tol=1e-3
        )  # scales may differ
        if not is_close or theirs.kv_bytes_per_token != part.kv_bytes_per_token:
            config.note(
                f"{BESIDE}: this file implies {theirs.weight_bytes:,} bytes of weights and"
                f" {theirs.kv_bytes_per_token:,} bytes of KV cache per token, but config.json,"
                f" which is used, implies {part.weight_bytes:,} and {part.kv_bytes_per_token:,}"
            )
    return replace(found, notes=tuple(config.notes))


def _built(config: Config, storage: Storage) -> Part:
    """Return a decoder that is not in the table, built by `transformers` on torch's meta device.

    The size of the KV cache is computed from fields with common names. If these fields are missing,
    the size is unknown.

    Raises
    ------
    InvalidInput
        If torch or transformers is not installed, or if they cannot build the model.
    """
    try:
        import torch
        import transformers

        built = transformers.AutoConfig.for_model(**config.data)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(built, trust_remote_code=False)
        model.tie_weights()
        shapes = {
            name.removesuffix(".weight"): tuple(item.shape)
            for name, item in model.named_parameters()
        }
    except Exception as error:  # model classes raise arbitrary errors for unexpected fields
        known = ", ".join(
            name
            for name, kind in MODEL_TYPES.items()
            if kind["architecture"] and not name.endswith("_text")
        )
        why = f"transformers: {type(error).__name__}"
        if isinstance(error, ImportError):
            why = "unless torch and transformers are installed"
        raise InvalidInput(
            f"{config.path('model_type')}: expected one of {known} ({why}), got"
            f" {describe(config.model_type)}; {BY_HAND}"
        ) from None
    is_tied = not any(name.endswith("lm_head") for name in shapes)
    outside = list[Weight]()
    for name, shape in shapes.items():
        role = "head" if name.endswith("lm_head") else "linear"
        if len(shape) != 2:
            role = "other"
        elif "embed" in name:
            role = "tied" if is_tied and "embed_tokens" in name else "table"
        outside.append(Weight(name, shape, role))
    unknown = ["weight_bytes", "reads"] if storage.method else []
    if any("expert" in name for name in shapes):
        unknown += ["active_parameters", "routed_expert_parameters", "reads", "flops_per_token"]
    blocks = list[Formulas]()
    try:
        config.check({})
        blocks = read_layers(config, "")
    except InvalidInput:
        unknown += ["kv_bytes_per_token", "flops_per_token_pair"]
    for block in blocks:
        block["weights"] = ()  # the parameters are those that transformers counts
    config.note(
        f"model_type: specopt does not know {config.model_type}; transformers counts its parameters"
    )
    if unknown:
        names = ", ".join(dict.fromkeys(unknown))
        config.note(f"{names}: null, because no field determines them; enter them by hand")
    return Part(
        outside=outside,
        blocks=blocks,
        storage=storage,
        layers=config.size("num_hidden_layers", len(blocks), 0),
        unknown=tuple(unknown),
    )


def _vision_parameters(config: Config) -> int | None:
    """Return the total number of parameters of an image encoder and its projector.

    The result is None if the model has no image encoder or if the type of the encoder is unknown.
    """
    entry = VISION.get(str(config.whole.get("model_type")))
    if not entry or not config.whole.get("vision_config"):
        return None
    table = {**entry, "decoder_width": config.size("hidden_size")}
    return int(Formulas(config.whole.inside("vision_config"), table)["parameters"])


def _add_notes(config: Config, found: ModelConfig) -> None:
    """Add notes on the limitations of a decoder's counts."""
    window = config.get("sliding_window")
    if (
        found.window is None
        and config.get("use_sliding_window") is not False
        and window is not None
    ):
        config.note(
            f"sliding_window: {describe(window)}; not used by {config.model_type}, so every cache"
            " grows with the context"
        )
    if found.projected:
        config.note(
            f"word_embed_proj_dim: the embeddings have {found.layout['embedding']} dimensions, not"
            f" {found.exact.hidden}; no cost model includes the two projections"
        )
    if found.dense is None:
        experts = "routed experts" if found.routed_expert_parameters else ""
        forms = [experts, *(block["what"] for block in found.blocks)]
        has = ", ".join(dict.fromkeys(filter(None, forms)))
        config.note(
            "paper: null, because the papers' cost model describes only dense decoders, and this"
            f" model has {has or 'layers that differ from each other'}"
        )
    if found.window_kv_bytes:
        config.note(
            f"sliding_window: {found.window_kv_bytes:,} bytes per token are cached for at most"
            f" {found.window:,} tokens, and {found.growing_kv_bytes:,} bytes per token for all"
            " tokens"
        )
    if found.state_bytes_per_sequence:
        config.note(
            f"state_bytes_per_sequence: {found.state_bytes_per_sequence:,} bytes in addition to the"
            f" cache, at {found.storage.kv_value_bytes} bytes per value"
        )
    if found.storage.method is not None:
        config.note(
            f"quantization_config: weight_bytes counts {found.storage.method} weights and their"
            f" scales{'; cost models count plain weights' if found.dense else ''}"
        )
    if unmatched := found.storage.unmatched(
        weight for part in (found, *found.heads) for weight in part.weights
    ):
        config.note(
            f"quantization_config: {len(unmatched)} of the listed names match no counted tensor:"
            f" {describe(unmatched)}"
        )
