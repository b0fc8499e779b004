"""Hugging Face `config.json` files: exact counts of decoders and draft heads, and cost models of dense ones.

`specopt.instances.checkpoints.fields` has the types that are understood. `transformers`, where it is installed, counts
the parameters of others. Everything else (encoders, unknown quantisations) is refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.dense import DenseShape, Layout, dense_shape
from specopt.instances.checkpoints.draft_heads import CLASSES, DraftHead, head_kind, predicting_layers, read_head
from specopt.instances.checkpoints.fields import DECODER, VISION
from specopt.instances.checkpoints.layers import read_layers, under
from specopt.instances.checkpoints.meta_device import attention_of_fields, built_weights
from specopt.instances.checkpoints.part import Part
from specopt.instances.checkpoints.quantisation import EXPONENTS, Storage, read_storage
from specopt.instances.checkpoints.section import Section
from specopt.instances.checkpoints.tensors import Formulas
from specopt.models.arguments import one_of
from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import describe
from specopt.models.files import unique_keys
from specopt.models.reading import StrPath, read_bytes

MAX_BYTES = 4 * 2**20
"""Largest file that is read as a config: weights given by mistake are not loaded first."""

DTYPES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, "int8": 1}
"""Bytes per value of the data types that counts can be given in."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Part):
    """A decoder, or a draft head, as its config describes it.

    Parameters
    ----------
    name
        The model's name, or the file's.
    model_type
        As in the config.
    head
        Which draft head it is; None: it is a decoder.
    heads
        Draft heads that come with a decoder; they are not in its counts.
    dense
        The shape that cost models of `serving-latency` can describe; None: they cannot.
    vision_parameters
        Parameters of an image encoder beside the decoder, where known; they are not in its counts.
    dtype
        The data type that the config names, if any; the counts do not depend on it.
    notes
        What a reader should know: defaults taken, parts not counted.
    """

    name: str
    model_type: str
    head: str | None = None
    heads: tuple[DraftHead, ...] = ()
    dense: DenseShape | None = None
    vision_parameters: int | None = None
    dtype: str | None
    notes: tuple[str, ...]

    @property
    def exact(self) -> ExactDecoder:
        """The exact cost model of a dense decoder."""
        return self._shape.exact

    @property
    def paper(self) -> PaperDecoder:
        """The papers' cost model of a dense decoder."""
        return self._shape.paper

    @property
    def layout(self) -> Layout:
        """Biases, norms and positions of a dense decoder: memory that is not in the cost models."""
        return self._shape.layout

    @property
    def projected(self) -> bool:
        """Whether embeddings have another dimension than layers: the cost model `exact` cannot say so."""
        return self.dense is not None and self.layout.embedding != self.exact.hidden

    @property
    def _shape(self) -> DenseShape:
        if self.dense is None:
            raise Unsupported(
                f"{self.name}: no cost model of operations describes it: not a dense decoder; count tokens instead"
            )
        return self.dense


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


def read_model_config(path: StrPath, *, dtype: str | None = None) -> ModelConfig:
    """Read a `config.json`, or the one in a folder.

    Parameters
    ----------
    path
        The file, in UTF-8 with or without a byte-order mark.
    dtype
        One of `DTYPES`: what weights and cache are counted in; by default two bytes per value, or what the config's
        quantisation says.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no JSON object, or describes a model whose counts are not known here; the
        message names file and field.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    value = None if dtype is None else bytes_per_value(dtype)
    raw = read_bytes(file, MAX_BYTES)
    try:
        data = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file}: expected a JSON document in UTF-8: {error}") from None
    try:
        return parse_model_config(data, name=_file_name(file), value_bytes=value)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from None


def parse_model_config(data: object, *, name: str = "model", value_bytes: int | None = None) -> ModelConfig:
    """Build the cost models from a config as JSON-like data.

    Parameters
    ----------
    data
        The content of a `config.json`.
    name
        The model's name, where the config gives none.
    value_bytes
        Bytes of a weight or cached value; None: 2, or what the config's quantisation says.

    Raises
    ------
    InvalidInput
        If a field is missing, contradictory, or means a model whose counts are not known here.
    """
    return _read(Config(data), name, value_bytes)


def _read(config: Config, fallback: str, value_bytes: int | None) -> ModelConfig:
    name, dtype, storage = _name(config, fallback), _dtype(config), _storage(config, value_bytes)
    if not config.is_known:
        return _built(config, name, dtype, storage)
    kind = head_kind(config)
    config.refuse_marks(*(("drafts",) if kind else ()))
    config.check_architectures(CLASSES if kind else ())
    config.check_fixed({})
    if config.given("auto_map"):
        config.note(f"auto_map: code of its own is named there; counted as a {config.model_type}")
    if kind is None:
        return _decoder(config, name, dtype, storage)
    head = read_head(config, kind, storage)
    config.note(f"{head.kind}: a draft head; it borrows {', '.join(item.name for item in head.borrowed)}")
    return ModelConfig(
        name=name,
        model_type=config.model_type,
        head=head.kind,
        dtype=dtype,
        notes=tuple(config.notes),
        weights=head.weights,
        borrowed=head.borrowed,
        attention=head.attention,
        storage=storage,
    )


def _decoder(config: Config, name: str, dtype: str | None, storage: Storage) -> ModelConfig:
    """Return the counts of a decoder whose type the table has."""
    layers = read_layers(config)
    attention = tuple(layer.attention for layer in layers)
    sizes = config.formulas.having({}, layers=len(layers), index=0, kind="", sparse=False)
    if config.given("sliding_window") and all(item.window is None for item in attention):
        _note_unused_window(config)
    weights = [*sizes.tensors(DECODER), *sizes.tensors(config.type.outside)]
    embeddings = [item for item in weights if item.name in ("model.embed_tokens", "lm_head")]
    for index, layer in enumerate(layers):
        weights += under(f"{config.type.names['model']}.layers.{index}", layer.weights)
    head = predicting_layers(config, layers, embeddings, storage)
    found = ModelConfig(
        name=name,
        model_type=config.model_type,
        heads=() if head is None else (head,),
        dense=dense_shape(layers, name, storage.value_bytes),
        vision_parameters=_vision_parameters(config, sizes["hidden_size"]),
        dtype=dtype,
        notes=(),
        weights=tuple(weights),
        attention=attention,
        storage=storage,
    )
    return replace(found, notes=(*config.notes, *_notes(found)))


def _built(config: Config, name: str, dtype: str | None, storage: Storage) -> ModelConfig:
    """Return the counts of a decoder that the table does not have, as `transformers` builds it."""
    weights = built_weights(config)
    attention, unknown = attention_of_fields(config)
    if storage.method is not None:
        unknown.append("weight_bytes")
    if any("expert" in weight.name for weight in weights):
        unknown += ["active_parameters", "routed_expert_parameters", "flops_per_token", "reads"]
    config.note(f"model_type: {config.model_type} is not known here; its parameters are those of transformers")
    if unknown:
        config.note(f"{', '.join(unknown)}: null, for no field says what they are; give by hand what a plan needs")
    return ModelConfig(
        name=name,
        model_type=config.model_type,
        dtype=dtype,
        notes=tuple(config.notes),
        weights=weights,
        attention=attention,
        storage=storage,
        unknown=tuple(unknown),
    )


def _vision_parameters(config: Config, decoder_width: int) -> int | None:
    """Return the parameters of an image encoder and its projector; None where there is none, or its type is unknown."""
    part, wrapper = config.whole.get("vision_config"), str(config.whole.get("model_type"))
    if not isinstance(part, dict) or wrapper not in VISION:
        return None
    return int(Formulas(Section(part, "vision_config"), VISION[wrapper], decoder_width=decoder_width)["parameters"])


def _storage(config: Config, value_bytes: int | None) -> Storage:
    """Return how weights are kept: at a size that was asked for, or as the config says."""
    if value_bytes is not None:
        return Storage(value_bytes=value_bytes, kv_value_bytes=value_bytes)
    keys = ("quantization_config", "compression_config")
    places = ((config.data, config.where), (config.whole, ""))
    given = [(place[key], f"{where}{key}") for place, where in places for key in keys if place.get(key)]
    storage = read_storage(*given[0]) if given else Storage()
    experts = config.get("expert_dtype") or (config.type.expert_dtype if given else None)
    if experts and one_of(config.path("expert_dtype"), experts, ("fp4", "fp8")) == "fp4":
        return replace(storage, schemes=(("*.experts.*", EXPONENTS), *storage.schemes), method=storage.method or "fp4")
    return storage


def _notes(config: ModelConfig) -> Iterator[str]:
    """Yield what the counts leave open."""
    if config.projected:
        yield (
            f"word_embed_proj_dim: embeddings of {config.layout.embedding}, not {config.exact.hidden}, with two"
            " projections; they are in the parameters, but no cost model can say so"
        )
    if config.dense is None:
        yield f"paper: null, for the papers' cost model knows dense decoders alone, and this has {_unlike(config)}"
    if config.window is not None and config.window_kv_bytes:
        caches = f"{config.window_kv_bytes:,} bytes more grow" if config.growing_kv_bytes else "every cache grows"
        yield f"sliding_window: {caches} per token up to {config.window:,} tokens only"
    if config.state_bytes_per_sequence:
        what = ", ".join(dict.fromkeys(item.what for item in config.attention if item.state_values))
        yield (
            f"{what}: {config.state_bytes_per_sequence:,} bytes of state per sequence beside the cache,"
            f" at {config.storage.kv_value_bytes} per value"
        )
    if config.storage.method is not None:
        cost = "; cost models count plain weights" if config.dense is not None else ""
        yield f"quantization_config: {config.storage.method}, in weight_bytes with its scales{cost}"
    for head in config.heads:
        yield f"{head.kind}: {head.layers} more {'layer' if head.layers == 1 else 'layers'} for drafting, counted apart"


def _unlike(config: ModelConfig) -> str:
    """Return what sets a decoder apart from a dense one whose layers are all alike."""
    found = ["routed experts"] if config.routed_expert_parameters else []
    found += dict.fromkeys(item.what for item in config.attention if item.what)
    return ", ".join(found) or "layers that differ from each other"


def _note_unused_window(config: Config) -> None:
    if config.get("use_sliding_window") is not False:
        window = describe(config.get("sliding_window"))
        config.note(
            f"sliding_window: {window}; not a {config.model_type}'s: every cache grows with the context"
        )


def _name(config: Config, fallback: str) -> str:
    given = config.whole.get("_name_or_path")
    is_repository = isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", given, re.ASCII)
    return str(given) if is_repository else fallback


def _dtype(config: Config) -> str | None:
    for place, where in ((config.data, config.where), (config.whole, "")):
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


def _file_name(file: Path) -> str:
    """Return the model's name as the file system tells it: the file's, or its folder's if it is a plain config.json."""
    is_plain = file.name == "config.json"
    name = file.absolute().parent.name if is_plain else file.name.removesuffix(".json").removesuffix(".config")
    return name.encode("utf-8", "replace").decode() or "model"  # names of files need not be UTF-8
