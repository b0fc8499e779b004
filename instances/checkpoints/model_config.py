"""Hugging Face `config.json` files: exact counts of decoders and draft heads, and cost models of dense ones.

Strict by `model_type`: `specopt.instances.checkpoints.model_types` has the conventions of those that are understood.
Everything else (encoders, state-space layers, unknown types and quantisations) is refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specopt.instances.checkpoints.config_fields import Fields
from specopt.instances.checkpoints.dense import DenseShape, Layout, dense_shape
from specopt.instances.checkpoints.forms import Sizes
from specopt.instances.checkpoints.heads import HEADS, DraftHead, head_kind, predicting_layers, read_head
from specopt.instances.checkpoints.layers import norm_values, read_layers, side_size
from specopt.instances.checkpoints.part import Part
from specopt.instances.checkpoints.quantisation import read_storage
from specopt.instances.checkpoints.storage import EXPONENTS, Storage
from specopt.instances.checkpoints.vision import vision_parameters
from specopt.instances.checkpoints.weights import Weight, matrix, under, vector
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
    dense: DenseShape | None
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
    return _read(Fields(data), name, value_bytes)


def _read(fields: Fields, name: str, value_bytes: int | None) -> ModelConfig:
    kind = head_kind(fields)
    fields.refuse_marks(*(("drafts",) if kind else ()))
    fields.check_architectures(*(HEADS if kind else ()))
    fields.check_fixed()
    label, dtype = _name(fields, name), _dtype(fields)
    storage = _storage(fields, value_bytes)
    if fields.part.get("auto_map") is not None:
        fields.notes.append(f"auto_map: code of its own is named there; counted as a {fields.model_type}")
    if kind is not None:
        head = read_head(fields, kind, storage)
        fields.notes.append(f"{kind}: a draft head; it borrows {', '.join(item.name for item in head.borrowed)}")
        return ModelConfig(
            name=label, model_type=fields.model_type, head=kind, dense=None, dtype=dtype, notes=tuple(fields.notes),
            weights=head.weights, borrowed=head.borrowed, mixers=head.mixers, storage=storage,
        )  # fmt: skip
    layers = read_layers(fields)
    if fields.get("sliding_window") is not None and all(layer.mixer.window is None for layer in layers):
        _note_unused_window(fields)
    hidden = fields.size("hidden_size")
    dense = dense_shape(fields, layers, label, storage)
    embeddings = _embeddings(fields, hidden, dense.layout if dense else None)
    sides = _sides(fields, hidden, len(layers))
    found = ModelConfig(
        name=label,
        model_type=fields.model_type,
        heads=predicting_layers(fields, layers, embeddings, storage),
        dense=dense,
        vision_parameters=vision_parameters(fields.whole, hidden),
        dtype=dtype,
        notes=(),
        weights=(*embeddings, *sides,
            *_outside(hidden, norm_values(fields), dense.layout if dense else None),
            *under(fields.type.model, Sizes(fields).tensors(fields.type.outside)),
                 *(weight for index, layer in enumerate(layers)
                   for weight in under(f"{fields.type.model}.layers.{index}", layer.weights()))),
        mixers=tuple(layer.mixer for layer in layers),
        storage=storage,
    )  # fmt: skip
    return replace(found, notes=(*fields.notes, *_notes(found)))


def _embeddings(fields: Fields, hidden: int, layout: Layout | None) -> list[Weight]:
    """Return the table of embeddings and the output matrix, or the one matrix that is both."""
    shape = (fields.size("vocab_size"), hidden if layout is None else layout.embedding)
    if fields.tied():
        return [Weight(name="model.embed_tokens", shape=shape, role="tied")]
    return [
        Weight(name="model.embed_tokens", shape=shape, role="table"),
        Weight(name="lm_head", shape=shape, role="head"),
    ]


def _sides(fields: Fields, hidden: int, layers: int) -> list[Weight]:
    """Return the tables of embeddings that layers have of their own, and what mixes them with the model's."""
    side = side_size(fields)
    if side == 0:
        return []
    rows = fields.size("vocab_size_per_layer_input", fields.size("vocab_size"))
    return [
        Weight(name="model.embed_tokens_per_layer", shape=(rows, layers * side), role="table"),
        *matrix("model.per_layer_model_projection", layers * side, hidden),
        vector("model.per_layer_projection_norm", side),
    ]


def _outside(hidden: int, values: int, layout: Layout | None) -> list[Weight]:
    """Return what stands before and behind the layers, embeddings aside."""
    if layout is None:
        return [vector("model.norm", values, hidden)]
    found = [vector("model.norm", values, hidden)] if layout.final_norm else []
    if layout.position_rows:
        found.append(Weight(name="model.embed_positions", shape=(layout.position_rows, hidden), role="table"))
    if layout.embedding != hidden:
        found += [*matrix("model.project_in", hidden, layout.embedding),
                  *matrix("model.project_out", layout.embedding, hidden)]  # fmt: skip
    return found


def _storage(fields: Fields, value_bytes: int | None) -> Storage:
    """Return how weights are kept: at a size that was asked for, or as the config says."""
    places = ((fields.part, fields.where), (fields.whole, ""))
    keys = ("quantization_config", "compression_config")
    given = [(place[key], f"{where}{key}") for place, where in places for key in keys if place.get(key)]
    if value_bytes is not None:
        return Storage(value_bytes=value_bytes, kv_value_bytes=value_bytes)
    storage = read_storage(*given[0]) if given else Storage()
    experts = fields.get("expert_dtype") or (fields.type.expert_dtype if given else None)
    if experts is not None and one_of(f"{fields.where}expert_dtype", experts, ("fp4", "fp8")) == "fp4":
        return replace(storage, schemes=(("*.experts.*", EXPONENTS), *storage.schemes), method=storage.method or "fp4")
    return storage


def _notes(config: ModelConfig) -> Sequence[str]:
    """Return what the counts leave open."""
    notes, window = [], config.window
    if config.projected:
        notes.append(
            f"word_embed_proj_dim: embeddings of {config.layout.embedding}, not {config.exact.hidden}, with two"
            " projections; they are in the parameters, but no cost model can say so"
        )
    if config.dense is None:
        notes.append(
            f"paper: null, for the papers' cost model knows dense decoders alone, and this has {_unlike(config)}"
        )
    if window is not None and config.window_kv_bytes:
        caches = "every cache grows" if not config.growing_kv_bytes else f"{config.window_kv_bytes:,} bytes more grow"
        notes.append(f"sliding_window: {caches} per token up to {window:,} tokens only")
    if config.state_bytes_per_sequence:
        what = ", ".join(dict.fromkeys(mixer.what for mixer in config.mixers if mixer.state_values))
        notes.append(
            f"{what}: {config.state_bytes_per_sequence:,} bytes of state per sequence beside the cache,"
            f" at {config.storage.kv_value_bytes} per value"
        )
    if config.storage.method is not None:
        cost = "; cost models count plain weights" if config.dense is not None else ""
        notes.append(f"quantization_config: {config.storage.method}, in weight_bytes with its scales{cost}")
    notes += [
        f"{head.kind}: {head.layers} more {'layer' if head.layers == 1 else 'layers'} for drafting, counted apart"
        for head in config.heads
    ]
    return notes


def _unlike(config: ModelConfig) -> str:
    """Return what sets a decoder apart from a dense one whose layers are all alike."""
    found = ["routed experts"] if config.routed_expert_parameters else []
    found += dict.fromkeys(mixer.what for mixer in config.mixers if mixer.what)
    return ", ".join(found) or "layers that differ from each other"


def _note_unused_window(fields: Fields) -> None:
    if fields.get("use_sliding_window") is not False:
        window = describe(fields.get("sliding_window"))
        fields.notes.append(
            f"sliding_window: {window}; not a {fields.model_type}'s: every cache grows with the context"
        )


def _name(fields: Fields, fallback: str) -> str:
    given = fields.whole.get("_name_or_path")
    is_repository = isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", given, re.ASCII)
    return str(given) if is_repository else fallback


def _dtype(fields: Fields) -> str | None:
    for place, where in ((fields.part, fields.where), (fields.whole, "")):
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
