"""Reader for Hugging Face `config.json` files, with exact parameter counts and with cost models for
dense decoders.

Decoders and draft heads are supported. `fields.toml` contains the supported model types; the
parameters of other types are counted by `transformers` if that package is installed. Anything else
(such as encoders and unknown quantisations) is rejected with a message that names the unsupported
field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from specopt.instances.checkpoints.draft_heads import head_kind, predicting_layers, read_head
from specopt.instances.checkpoints.layers import Part, read_layers
from specopt.instances.checkpoints.quantisation import Storage, read_storage
from specopt.instances.reading.json_documents import json_documents
from specopt.models.arguments import one_of, sequence
from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import describe
from specopt.models.reading import StrPath

DTYPES: dict[str, int] = TABLE["bytes"]
"""Number of bytes per value of the data types that a caller may specify."""


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
    dense
        Exact cost model of a decoder whose layers are all equal and dense; None for other models.
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
    dense: ExactDecoder | None = None
    vision_parameters: int | None = None
    dtype: str | None
    notes: tuple[str, ...]

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
        exact = self.exact
        return PaperDecoder(
            layers=exact.layers, hidden=exact.hidden, ffn=exact.ffn, name=exact.name
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
        file = file / "config.json"
    is_plain = file.name == "config.json"
    name = file.name.removesuffix(".json").removesuffix(".config")
    name = file.absolute().parent.name if is_plain else name
    name = name.encode("utf-8", "replace").decode()  # file names need not be valid UTF-8
    size = None if dtype is None else DTYPES[one_of("dtype", dtype, DTYPES)]
    data = _document(file)
    found = _parsed(file, data, name, size)
    beside = file.with_name("hf_quant_config.json")  # written by ModelOpt
    if size is not None or not is_plain or not beside.exists():
        return found
    own = Section(_document(beside), str(beside)).get("quantization")
    own = {"quant_method": "modelopt", **Section(own, f"{beside}: quantization").data}
    other = _parsed(beside, {**data, "quantization_config": own}, name, size)
    if found.storage.method is None:
        note = f"{beside.name}: weights and cache are counted as it says"
        return replace(other, notes=(*other.notes, note))
    sizes = [(one.weight_bytes, one.kv_bytes_per_token) for one in (other, found)]
    if all(isclose(*pair, rel_tol=1e-3) for pair in zip(*sizes, strict=True)):  # other scales
        return found
    words = " {:,} bytes of weights and {:,} of KV cache per token"
    note = f"{beside.name} means{words.format(*sizes[0])}, config.json{words.format(*sizes[1])}"
    return replace(found, notes=(*found.notes, f"{note}: those of config.json are counted"))


def _document(file: Path) -> Any:
    """Return the JSON document in a file."""
    documents = json_documents(file)
    if len(documents) != 1:
        raise InvalidInput(f"{file}: expected a single JSON document, got {len(documents)}")
    return documents[0]


def _parsed(file: Path, data: Any, name: str, value_bytes: int | None) -> ModelConfig:
    try:
        return parse_model_config(data, name=name, value_bytes=value_bytes)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from None


def parse_model_config(
    data: object, *, name: str = "", value_bytes: int | None = None
) -> ModelConfig:
    """Count the parameters of a model whose config is given as JSON-like data, and build the cost
    models.

    Parameters
    ----------
    data
        Content of a `config.json`.
    name
        Name of the model if the config does not contain one; "model" if it is empty.
    value_bytes
        Number of bytes per weight and per cached value. None means 2, or the sizes that follow
        from the config's quantisation.

    Raises
    ------
    InvalidInput
        If a field is missing or contradictory, or if the model cannot be counted.
    """
    config = Config(data)
    given = str(config.whole.get("_name_or_path"))
    is_repository = re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", given, re.ASCII)
    name = given if is_repository else name or "model"
    dtype = str(config.get("dtype|torch_dtype", ""))
    if not re.fullmatch(r"((torch\.)?[a-z]\w{0,40})?", dtype, re.ASCII):
        raise InvalidInput(f"torch_dtype: expected the name of a data type, got {describe(dtype)}")
    try:
        storage = read_storage(config, value_bytes)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; count bytes of a fixed size with --dtype instead") from None
    heads: tuple[Part, ...] = ()
    dense = vision = None
    kind = head_kind(config)
    if not config.is_listed:
        part = _built(config, storage)
    else:
        path = config.path("architectures")
        known = [*config.type["architecture"], *(HEADS[kind]["classes"] if kind else ())]
        for item in sequence(path, config.data.get("architectures") or []):
            one_of(path, item, known)
        if config.given("auto_map"):
            config.note(f"auto_map: the model names its own code; counted as a {config.model_type}")
        if kind:
            part = read_head(config, kind, storage)
        else:
            part = _decoder(config, storage)
            heads = predicting_layers(config, part)
            dense = _exact(part, name)
            vision = _vision_parameters(config)
            _add_notes(config, part, heads, dense)
    return ModelConfig(
        **vars(part),
        name=name,
        model_type=config.model_type,
        heads=heads,
        dense=dense,
        vision_parameters=vision,
        dtype=dtype.removeprefix("torch.") or None,
        notes=tuple(config.notes),
    )


def _decoder(config: Config, storage: Storage) -> Part:
    """Return a decoder whose model type is in the table."""
    config.check(config.type["fixed"])
    blocks = read_layers(config, f"{config.type['names']['model']}.layers")
    lines = [*TABLE["decoder"]["tensors"], *config.type["outside"]]
    return Part(
        outside=[*blocks[0].tensors(lines)], blocks=blocks, storage=storage, layers=len(blocks)
    )


def _exact(part: Part, name: str) -> ExactDecoder | None:
    """Return the exact cost model of a decoder, or None if its layers differ or are not dense."""
    shape, *others = (block["exact"] for block in part.blocks)
    if shape is None or any(other != shape for other in others):
        return None
    return ExactDecoder(
        layers=part.layers, bytes_per_value=part.storage.value_bytes, name=name, **shape
    )


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
        known = ", ".join(name for name in MODEL_TYPES if not name.endswith("_text"))
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
    layers = config.size("num_hidden_layers", len(blocks), 0)
    return Part(
        outside=outside, blocks=blocks, storage=storage, layers=layers, unknown=tuple(unknown)
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


def _add_notes(
    config: Config, part: Part, heads: Sequence[Part], dense: ExactDecoder | None
) -> None:
    """Add notes on the limitations of a decoder's counts."""
    window, embedding = config.get("sliding_window"), part.blocks[0]["embedding"]
    is_on = config.get("use_sliding_window") is not False
    if window is not None and part.window is None and is_on:
        config.note(
            f"sliding_window: {describe(window)}; not used by {config.model_type}, so that every"
            " cache grows with the context"
        )
    if dense and embedding != dense.hidden:
        config.note(
            f"word_embed_proj_dim: the embeddings have {embedding} dimensions, not {dense.hidden};"
            " the parameters include the two projections, but no cost model does"
        )
    if not dense:
        forms = ["routed experts" if part.routed_expert_parameters else ""]
        forms += [block["what"] for block in part.blocks]
        has = ", ".join(dict.fromkeys(filter(None, forms)))
        config.note(
            "paper: null, because the papers' cost model describes only dense decoders, and this"
            f" model has {has or 'layers that differ from each other'}"
        )
    if part.window_kv_bytes:
        config.note(
            f"sliding_window: {part.window_kv_bytes:,} bytes per token are cached for at most"
            f" {part.window:,} tokens, and {part.growing_kv_bytes:,} bytes per token for all tokens"
        )
    if part.state_bytes_per_sequence:
        config.note(
            f"state_bytes_per_sequence: {part.state_bytes_per_sequence:,} bytes in addition to the"
            f" cache, at {part.storage.kv_value_bytes} per value"
        )
    if part.storage.method is not None:
        cost = "; cost models count plain weights" if dense else ""
        config.note(
            f"quantization_config: {part.storage.method}, in weight_bytes with its scales{cost}"
        )
    held = [weight for one in (part, *heads) for weight in one.weights]
    if unmatched := part.storage.unmatched(held):
        config.note(
            f"quantization_config: {len(unmatched)} of its names match no counted tensor:"
            f" {describe(unmatched)}"
        )
    for head in heads:
        config.note(f"{head.kind}: a draft head, counted separately (layers: {head.layers})")
