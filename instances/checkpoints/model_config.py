"""Reader for Hugging Face `config.json` files, with exact parameter counts and with cost models for
dense decoders.

Decoders and draft heads are supported. `fields.toml` contains the supported model types; the
parameters of other types are counted by `transformers` if that package is installed. Anything else
(such as encoders and unknown quantisations) is rejected with a message that names the unsupported
field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path
from typing import Any

from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.draft_heads import (
    CLASSES,
    head_kind,
    predicting_layers,
    read_head,
)
from specopt.instances.checkpoints.fields import TABLE, VISION, Formulas, Section, Weight
from specopt.instances.checkpoints.layers import Layer, Part, read_layers
from specopt.instances.checkpoints.quantisation import QUANTISED, Storage, read_storage
from specopt.models.arguments import one_of, sequence
from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import describe
from specopt.models.files import unique_keys
from specopt.models.reading import StrPath, read_bytes

MAX_BYTES = 4 * 2**20
"""Maximum size of a config, in bytes; larger files are rejected, since they may be weights."""

DTYPES: dict[str, int] = TABLE["bytes"]
"""Number of bytes per value of the data types that a caller may specify."""

BESIDE = "hf_quant_config.json"
"""Name of ModelOpt's file next to `config.json`, which describes the quantisation."""

CLOSE = 1e-3
"""Allowed relative difference between the sizes from the two files, whose scales may differ."""


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
        return self.blocks[0].sizes

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
    value = None if dtype is None else DTYPES[one_of("dtype", dtype, DTYPES)]
    data, name = _document(file), _file_name(file)
    found = _parsed(file, data, name, value)
    beside = file.with_name(BESIDE)
    if value is not None or file.name != "config.json" or not beside.exists():
        return found
    quantised = Section(_document(beside)).get("quantization")
    own = Section(quantised, f"{beside}: quantization").data
    own = {QUANTISED.partition("|")[0]: {"quant_method": "modelopt", **own}}
    other = _parsed(beside, {**data, **own}, name, value)
    sizes = [(one.weight_bytes, one.kv_bytes_per_token) for one in (other, found)]
    if found.storage.method is None:
        note = f"{BESIDE}: weights and cache are counted as it says"
        return replace(other, notes=(*other.notes, note))
    if all(isclose(one, two, rel_tol=CLOSE) for one, two in zip(*sizes, strict=True)):
        return found
    words = " {:,} bytes of weights and {:,} of KV cache per token"
    note = f"{BESIDE} means{words.format(*sizes[0])}, config.json{words.format(*sizes[1])}"
    return replace(found, notes=(*found.notes, f"{note}: those of config.json are counted"))


def _document(file: Path) -> Any:
    raw = read_bytes(file, MAX_BYTES)
    try:
        return json.loads(raw.decode("utf-8-sig"), object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file}: expected a JSON document in UTF-8: {error}") from None


def _parsed(file: Path, data: Any, name: str, value_bytes: int | None) -> ModelConfig:
    try:
        return parse_model_config(data, name=name, value_bytes=value_bytes)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from None


def parse_model_config(
    data: object, *, name: str = "model", value_bytes: int | None = None
) -> ModelConfig:
    """Count the parameters of a model whose config is given as JSON-like data, and build the cost
    models.

    Parameters
    ----------
    data
        Content of a `config.json`.
    name
        Name of the model if the config does not contain one.
    value_bytes
        Number of bytes per weight and per cached value. None means 2, or the sizes that follow
        from the config's quantisation.

    Raises
    ------
    InvalidInput
        If a field is missing or contradictory, or if the model cannot be counted.
    """
    config = Config(data)
    storage = read_storage(config, value_bytes)
    more = dict[str, Any]()
    name = _name(config, name)
    if config.is_listed:
        kind = head_kind(config)
        config.check(config.type["fixed"], *(["drafts"] if kind else []))
        path = config.path("architectures")
        for item in sequence(path, config.data.get("architectures") or []):
            one_of(path, item, [*config.type["architecture"], *(CLASSES if kind else ())])
        if config.given("auto_map"):
            config.note(f"auto_map: the model names its own code; counted as a {config.model_type}")
        part = read_head(config, kind, storage) if kind else _decoder(config, storage)
        if kind:
            config.note(
                f"{part.kind}: a draft head that borrows"
                f" {', '.join(item.name for item in part.borrowed)}"
            )
        else:
            more["heads"] = tuple(predicting_layers(config, part))
            more["dense"] = _exact(part, name)
            more["vision_parameters"] = _vision_parameters(config)
    else:
        part = _built(config, storage)
    found = ModelConfig(
        **vars(part),
        **more,
        name=name,
        model_type=config.model_type,
        dtype=_dtype(config),
        notes=tuple(config.notes),
    )
    return replace(found, notes=(*found.notes, *_notes(found, config))) if more else found


def _decoder(config: Config, storage: Storage) -> Part:
    """Return a decoder whose model type is in the table."""
    blocks = read_layers(config, f"{config.type['names']['model']}.layers")
    lines = [*TABLE["decoder"]["tensors"], *config.type["outside"]]
    return Part(
        outside=[*blocks[0].sizes.tensors(lines)],
        blocks=blocks,
        storage=storage,
        layers=len(blocks),
    )


def _exact(part: Part, name: str) -> ExactDecoder | None:
    """Return the exact cost model of a decoder, or None if its layers differ or are not dense."""
    shapes = [
        {key: block.sizes[formula] for key, formula in TABLE["exact"].items()}
        for block in part.blocks
        if block.sizes["plain"]
    ]
    if len(shapes) < part.layers or any(shape != shapes[0] for shape in shapes):
        return None
    return ExactDecoder(
        layers=part.layers, bytes_per_value=part.storage.value_bytes, name=name, **shapes[0]
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
    except ImportError:
        raise config.refusal("unless torch and transformers are installed") from None
    except Exception as error:  # model classes raise arbitrary errors for unexpected fields
        raise config.refusal(f"transformers: {type(error).__name__}") from None
    outside = [
        Weight(name=name, shape=shape, role=_role(name, shape, shapes))
        for name, shape in shapes.items()
    ]
    unknown = ["weight_bytes", "reads"] if storage.method else []
    if any("expert" in name for name in shapes):
        unknown += ["active_parameters", "routed_expert_parameters", "reads", "flops_per_token"]
    blocks = list[Layer]()
    try:
        config.check({})
        blocks += [replace(block, weights=()) for block in read_layers(config, "")]
    except InvalidInput:
        unknown += ["kv_bytes_per_token", "flops_per_token_pair"]
    config.note(
        f"model_type: {config.model_type} is unknown to specopt; its parameters are those of"
        " transformers"
    )
    if unknown:
        names = ", ".join(dict.fromkeys(unknown))
        config.note(
            f"{names}: null, for no field says what they are; give by hand what a plan needs"
        )
    layers = config.size("num_hidden_layers", len(blocks), 0)
    return Part(
        outside=outside, blocks=blocks, storage=storage, layers=layers, unknown=tuple(unknown)
    )


def _role(name: str, shape: tuple[int, ...], names: Iterable[str]) -> str:
    if len(shape) != 2:
        return "other"
    if "embed_tokens" in name:
        return "table" if any(name.endswith("lm_head") for name in names) else "tied"
    return "table" if "embed" in name else "head" if name.endswith("lm_head") else "linear"


def _vision_parameters(config: Config) -> int | None:
    """Return the total number of parameters of an image encoder and its projector.

    The result is None if the model has no image encoder or if the type of the encoder is unknown.
    """
    part = config.whole.get("vision_config")
    entry = VISION.get(str(config.whole.get("model_type")))
    if not part or not entry:
        return None
    sizes = Formulas(
        Section(part, "vision_config"), {**entry, "decoder_width": config.size("hidden_size")}
    )
    return int(sizes["parameters"])


def _notes(found: ModelConfig, config: Config) -> Iterator[str]:
    """Yield notes on the limitations of the counts."""
    window = config.get("sliding_window")
    if (
        window is not None
        and found.window is None
        and config.get("use_sliding_window") is not False
    ):
        yield (
            f"sliding_window: {describe(window)}; not a {found.model_type}'s: every cache grows"
            " with the context"
        )
    if found.projected:
        yield (
            f"word_embed_proj_dim: embeddings of {found.layout['embedding']}, not"
            f" {found.exact.hidden}, with two projections; they are in the parameters, but no cost"
            " model can say so"
        )
    if found.dense is None:
        unlike = ["routed experts"] if found.routed_expert_parameters else []
        unlike += dict.fromkeys(block.what for block in found.blocks if block.what)
        has = ", ".join(unlike) or "layers that differ from each other"
        yield (
            "paper: null, for the papers' cost model knows dense decoders alone, and this has"
            f" {has}"
        )
    if found.window_kv_bytes:
        caches = (
            f"{found.window_kv_bytes:,} bytes more grow"
            if found.growing_kv_bytes
            else "every cache grows"
        )
        yield f"sliding_window: {caches} per token up to {found.window:,} tokens only"
    if found.state_bytes_per_sequence:
        what = ", ".join(dict.fromkeys(block.what for block in found.blocks if block.state_values))
        size = f"{found.state_bytes_per_sequence:,} bytes of state per sequence beside the cache"
        yield f"{what}: {size}, at {found.storage.kv_value_bytes} per value"
    if found.storage.method is not None:
        cost = "; cost models count plain weights" if found.dense is not None else ""
        yield f"quantization_config: {found.storage.method}, in weight_bytes with its scales{cost}"
    held = [weight for part in (found, *found.heads) for weight in part.weights]
    if unmatched := found.storage.unmatched(held):
        shown = ", ".join(describe(name) for name in unmatched[:3])
        yield (
            f"quantization_config: {len(unmatched)} of its names match no"
            f" counted tensor: {shown}{', ...' if len(unmatched) > 3 else ''}"
        )
    for head in found.heads:
        yield (
            f"{head.kind}: {head.layers} more {'layer' if head.layers == 1 else 'layers'} for"
            " drafting, counted apart"
        )


def _name(config: Config, fallback: str) -> str:
    given = config.whole.get("_name_or_path")
    is_repository = isinstance(given, str) and re.fullmatch(
        r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", given, re.ASCII
    )
    return str(given) if is_repository else fallback


def _dtype(config: Config) -> str | None:
    """Return the data type in the config, or None."""
    name = "dtype|torch_dtype"
    found = str(config.get(name, config.whole.get(name, "")))
    if found and not re.fullmatch(r"(torch\.)?[a-z]\w{0,40}", found, re.ASCII):
        raise InvalidInput(f"torch_dtype: expected the name of a data type, got {describe(found)}")
    return found.removeprefix("torch.") or None


def _file_name(file: Path) -> str:
    """Derive the name of a model from the path of its config.

    The name is that of the file, or that of the folder if the file is a `config.json`.
    """
    is_plain = file.name == "config.json"
    name = (
        file.absolute().parent.name
        if is_plain
        else file.name.removesuffix(".json").removesuffix(".config")
    )
    return name.encode("utf-8", "replace").decode() or "model"  # file names need not be valid UTF-8
